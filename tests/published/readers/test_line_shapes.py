"""Reading lines of the same shape together must give what the pattern alone gives."""

from __future__ import annotations

import random
import re
from dataclasses import replace

import numpy as np
import pytest

from trainmark.logs import logged_run
from trainmark.logs import read as engine
from trainmark.logs.format import Format, TimeFormat
from trainmark.logs.read import read_runs
from trainmark.logs.shapes import SMALLEST_BLOCK, dense, digit_blind

FORMAT = Format(
    name="made-up",
    title="made up",
    framework=None,
    patterns={
        "sign": "it ",
        "step": r"(?P<wall>[-\d]{10} [:.\d]{8,15}) it (?P<step>\d+) loss (?P<loss>\S+) ips (?P<rate>[\d.]+)"
        r"(?: lr (?P<lr>\S+))?",
        "evaluation": r"eval top (?P<top1>[\d.]+)",
        "start": "=== run",
    },
)


def stepping(step: str, clock: TimeFormat = TimeFormat.ISO) -> Format:
    """The same format with other progress lines."""
    return replace(FORMAT, patterns={**FORMAT.patterns, "step": step}, clock=clock)


def line(number: int, chance: random.Random) -> bytes:
    seconds = 40_000 + number * 0.25
    stamp = (
        f"2024-02-{28 + int(seconds // 86_400)} {int(seconds // 3600) % 24:02}:{int(seconds // 60) % 60:02}"
    )
    second = f"{seconds % 60:09.6f}" if number % 97 else f"{int(seconds % 60):02}"
    loss = "nan" if number % 5003 == 0 else f"{chance.uniform(-1, 12):.4f}"
    lr = f" lr {chance.uniform(0, 1):.1e}" if number % 211 == 0 else ""
    return f"{stamp}:{second} it {number} loss {loss} ips {chance.uniform(90, 1100):.2f}{lr}\n".encode()


@pytest.fixture(scope="module")
def block() -> bytes:
    chance = random.Random(11)
    made = [line(number, chance) for number in range(30_000)]
    made[500] = b"Saving model checkpoint\n"
    made[20_000] = b"eval top 0.75\n"
    return b"".join(made)


def read(block: bytes, monkeypatch, together: bool):
    if not together:
        monkeypatch.setattr(engine, "dense", lambda format, block: None)
    return list(read_runs(FORMAT, [block], "x.log"))


def test_a_large_block_is_read_by_shapes_and_a_small_one_is_not(block):
    assert len(block) > SMALLEST_BLOCK
    assert dense(FORMAT, block) is not None
    assert dense(FORMAT, block[: SMALLEST_BLOCK // 2]) is None


def test_both_ways_give_the_same_columns_to_the_last_bit(block, monkeypatch):
    (together,) = read(block, monkeypatch, together=True)
    (alone,) = read(block, monkeypatch, together=False)
    assert together.columns().keys() == alone.columns().keys()
    for name, column in alone.columns().items():
        assert np.array_equal(column, together.columns()[name], equal_nan=True), name
    assert together.evaluations == alone.evaluations == [{"top1": 0.75}]


def test_a_run_that_begins_inside_a_block_is_split_off(block, monkeypatch):
    half = block.find(b"\n", len(block) // 2) + 1
    together = read(block[:half] + b"=== run 2\n" + block[half:], monkeypatch, together=True)
    assert len(together) == 2
    assert sum(len(run.steps) for run in together) == 29_998


def test_a_pattern_over_two_lines_is_left_to_itself(block):
    over_two = stepping(r"it (?P<step>\d+) [^\n]*\n[^\n]*ips (?P<rate>\S+)")
    assert dense(over_two, block) is None


def test_lines_tagged_by_a_launcher_are_left_to_be_parted_first(block):
    assert dense(FORMAT, block.replace(b"\n", b"\n[rank3]:")) is None


@pytest.mark.parametrize(
    ("pattern", "blind"),
    [
        (rb"it (?P<step>\d+) .{19,26} [0-9]+", True),
        (rb"(?P<top1>\d+)(?P=top1)?", True),
        (rb"top1: (?P<top1>\d+)", False),
        (rb"loss [1-9]\d*", False),
    ],
)
def test_a_pattern_that_means_a_certain_digit_is_not_blind_to_digits(pattern, blind):
    assert digit_blind(re.compile(pattern)) is blind


@pytest.mark.parametrize("clock", [TimeFormat.UNIX, TimeFormat.UNIX_MS])
def test_times_in_seconds_and_milliseconds_are_told_apart(clock, monkeypatch):
    stamped = stepping(r"(?P<wall>[\d.]+) it (?P<step>\d+)", clock)
    block = b"".join(b"%d.5 it %d %s\n" % (1_600_000_000 + n, 10_000 + n, b"." * 60) for n in range(15_000))
    (run,) = read_runs(stamped, [block], "x.log")
    assert run.steps["wall"][0] == 1_600_000_000.5 / (1000 if clock is TimeFormat.UNIX_MS else 1)


@pytest.mark.parametrize("ranks", [1, 3])
def test_a_log_too_long_to_keep_is_thinned_without_changing_what_it_says(monkeypatch, ranks):
    monkeypatch.setattr(logged_run, "MOST_LINES", 1000)
    log_steps = logged_run.StepColumns()
    seconds = np.random.default_rng(1).uniform(0.1, 0.3, 9_000)
    for part in np.arange(9_000.0).reshape(90, -1):
        index = part.astype(int)
        columns = {"step": part // ranks, "wall": np.cumsum(seconds)[index], "rate": 1 / seconds[index]}
        if ranks > 1:
            columns["rank"] = part % ranks
        log_steps.append(columns, 100)
    assert len(log_steps) <= 1000
    assert log_steps["step"][-1] == 8_999 // ranks
    assert log_steps["wall"][-1] == pytest.approx(seconds.sum())
    weights = np.where(np.isnan(log_steps["joined"]), 1, log_steps["joined"])
    assert weights.sum() == pytest.approx(9_000, rel=0.01)
    assert set(weights[: log_steps.thinned]) == {2**log_steps.halvings}
    assert weights.sum() / (weights / log_steps["rate"]).sum() == pytest.approx(
        9_000 / seconds.sum(), rel=0.01
    )


@pytest.mark.parametrize("tags", [("",), ("[rank0]:", "[rank1]:")])
def test_midnight_between_two_blocks_is_passed_like_any_other(tags):
    timed = stepping(r"(?P<wall>\d\d:\d\d:\d\d,\d+) it (?P<step>\d+)", TimeFormat.TIME_OF_DAY)
    clock = ["23:59:58,500", "23:59:59,500", "00:00:00,500", "00:00:01,500"]
    lines = [f"{tag}{time} it {n}\n".encode() for n, time in enumerate(clock) for tag in tags]
    half = len(lines) // 2
    for blocks in ([b"".join(lines)], [b"".join(lines[:half]), b"".join(lines[half:])]):
        (run,) = read_runs(timed, blocks, "x.log")
        columns = run.columns()
        wall = columns["wall"][np.argsort(columns["step"], kind="stable")][:: len(tags)]
        assert np.diff(wall).tolist() == [1.0, 1.0, 1.0]
