"""How many steps a program is given, and when it is ended."""

from __future__ import annotations

import pytest

from trainmark.inside.hooks import stop_rule
from trainmark.inside.hooks.stop_rule import StopRule, steps_for


@pytest.mark.parametrize(
    "pace, steps",
    [(0.001, 5000), (0.01, 1000), (0.05, 200), (0.2, 100), (0.8, 75), (5.0, 20), (0.0, 5000)],
)
def test_a_figure_needs_a_hundred_steps_and_ten_seconds_within_a_minute(pace, steps):
    assert steps_for(pace) == steps


@pytest.fixture
def rules(tmp_path, monkeypatch):
    monkeypatch.setenv("TRAINMARK_EVENTS", str(tmp_path))
    monkeypatch.setenv(stop_rule.STOP, stop_rule.AUTO)
    monkeypatch.setenv(stop_rule.WARMUP, "3")

    def make(rank):
        rule = StopRule()
        rule.begin(rank)
        return rule

    return make


def test_rank_0_decides_for_all_ranks(rules, monkeypatch):
    clock = iter(range(1000))
    monkeypatch.setattr(stop_rule, "now", lambda: next(clock) * 0.05)
    lead, other = rules(0), rules(1)
    last = {}
    for step in range(1, 220):
        for name, rule in (("lead", lead), ("other", other)):
            if name not in last and rule.reached():
                last[name] = step
    assert last == {"lead": 203, "other": 203}


def test_without_a_limit_a_program_is_never_ended(monkeypatch, tmp_path):
    monkeypatch.delenv(stop_rule.STOP, raising=False)
    monkeypatch.setenv("TRAINMARK_EVENTS", str(tmp_path))
    rule = StopRule()
    rule.begin(0)
    assert not any(rule.reached() for _ in range(10_000))


def test_a_program_that_is_told_to_end_leaves_a_mark_for_whoever_waits_for_it(rules, tmp_path):
    rule = rules(3)
    for _ in range(2):
        with pytest.raises(SystemExit):
            rule.end_program()
    assert [path.name for path in tmp_path.iterdir()] == ["told-to-end-rank3"]
