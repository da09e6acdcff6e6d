"""The table and the lines below it."""

from __future__ import annotations

from dataclasses import replace

from healthy_node import ETH0, FACTS, WANTED

from trainmark.machine.diagnosis import diagnose
from trainmark.machine.diagnosis_table import as_text
from trainmark.machine.examination import ClockOffset, Examination, ExaminedNode, ResourceLimit

SMALL = replace(FACTS, interface=replace(ETH0, mtu=1500))


def shown(*all_facts) -> str:
    nodes = [
        ExaminedNode(f"n{i}", None, facts, ClockOffset(0.0, 0.0), {}) for i, facts in enumerate(all_facts, 1)
    ]
    return as_text(diagnose(Examination(WANTED, tuple(nodes))))


def line_of(text: str, check: str) -> str:
    return next(line for line in text.splitlines() if line.startswith(check))


def test_a_few_nodes_are_columns():
    text = shown(FACTS, FACTS, SMALL)
    assert text.splitlines()[0].split() == ["check", "n1", "n2", "n3"]
    assert line_of(text, "interface").count("✓ eth0, MTU 9000") == 2
    assert "✗ eth0, MTU 1500" in line_of(text, "interface")


def test_of_many_nodes_only_the_deviating_are_shown():
    text = shown(*[FACTS] * 6, SMALL)
    assert line_of(text, "interface").split("  ")[-1].strip() == "n7 ✗ eth0, MTU 1500, 100 Gb/s"
    assert "6 of 7" in line_of(text, "interface")
    assert "n3" not in text


def test_each_red_line_has_its_fix_below_it():
    lines = shown(FACTS, FACTS, SMALL).splitlines()
    (at,) = [index for index, line in enumerate(lines) if line.startswith("✗ n3, interface: ")]
    assert lines[at + 1] == "    fix: on n3: `sudo ip link set dev eth0 mtu 9000`"
    assert lines[-1].startswith("1 red, 0 to look at, ")


def test_red_comes_before_yellow():
    lines = shown(FACTS, FACTS, replace(SMALL, host=replace(FACTS.host, load=90.0))).splitlines()
    assert [line[0] for line in lines if line.startswith(("✗", "!"))] == ["✗", "!"]


def test_what_is_said_of_several_nodes_is_said_once():
    busy = replace(FACTS, host=replace(FACTS.host, load=90.0))
    lines = shown(busy, FACTS, busy).splitlines()
    (at,) = [index for index, line in enumerate(lines) if line.startswith("! n1, n3, load: ")]
    assert lines[at + 1].startswith("    fix: on each: `ps ")


def test_nothing_to_say_is_said_in_two_words():
    assert shown(FACTS).splitlines()[-1] == "all green"


def test_a_fix_is_not_folded_and_what_is_no_terminal_gets_no_colour():
    text = shown(replace(FACTS, locked_memory=ResourceLimit(65536, 65536)))
    assert "\x1b" not in text
    assert any(len(line) > 160 for line in text.splitlines() if line.startswith("    fix: "))


def test_a_nodes_words_cannot_move_the_cursor():
    text = shown(replace(FACTS, gpus=(), gpu_trouble="bad\x1b[2Jthings\nhere"))
    assert "bad [2Jthings here" in text
