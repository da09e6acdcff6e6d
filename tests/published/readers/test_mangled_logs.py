"""Logs that were shuffled, cut, joined or mixed with others: never a wrong figure without a doubt."""

from __future__ import annotations

import json
import random
import warnings
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from trainer_logs import LOGS, Written

from trainmark.base.archives import NamedStream
from trainmark.base.errors import UserError
from trainmark.logs.read import parsed_log
from trainmark.measure.log_figure import LogFacts, LoggedFigure, logged_figure

CORPUS = Path(__file__).resolve().parents[3].parent / "shared" / "corpus" / "logs"
# A figure this far from what was written is another one.
TOLERANCE = 0.12
NOISE = (
    "node1:123:456 [0] NCCL INFO Channel 00 : 0 1 2 3\n",
    "W0219 08:05:15.241000 12025 torch/distributed/run.py:793] Setting OMP_NUM_THREADS\n",
    "100%|####| 50/50 [00:10<00:00, 5.0it/s]\n",
    "INFO batch_size=32 iter 7 loss 3.2 world_size=1\n",
)


def figures(text: bytes) -> list[LoggedFigure]:
    """Of every run that is read; none where the log is refused."""
    try:
        log = parsed_log(NamedStream("log", iter([text])))
    except UserError:
        return []
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return [logged_figure(run.columns(), LogFacts(**run.facts())) for run in log.runs]


def wrong(readings: Sequence[LoggedFigure], written: Sequence[Written]) -> list[float]:
    """Throughputs that no log among these was written at, and that nothing is said against."""
    right = [(each.samples, each.unit) for each in written if each.samples is not None]
    return [
        figure.throughput
        for figure in readings
        if figure.throughput is not None
        and not figure.doubts
        and not any(
            figure.unit == unit and abs(figure.throughput / samples - 1) <= TOLERANCE
            for samples, unit in right
        )
    ]


def mangled(chance: random.Random, one: Written, other: Written) -> str:
    lines, others = one.text.splitlines(keepends=True), other.text.splitlines(keepends=True)
    way = chance.randrange(6)
    if way == 0:
        chance.shuffle(lines)
        return "".join(lines)
    if way == 1:
        first, last = sorted(chance.randrange(len(one.text) + 1) for _ in range(2))
        return one.text[first:last]
    if way == 2:
        first, last = sorted(chance.randrange(len(one.text) + 1) for _ in range(2))
        return one.text[:first] + one.text[last:]
    if way == 3:
        return one.text + other.text
    if way == 4:
        return one.text[: chance.randrange(len(one.text))] + other.text[chance.randrange(len(other.text)) :]
    share = chance.choice((0.02, 0.2, 0.5))
    between = [*others, *NOISE] if chance.random() < 0.5 else list(NOISE)
    return "".join(line + (chance.choice(between) if chance.random() < share else "") for line in lines)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.sampled_from(sorted(LOGS)), st.sampled_from(sorted(LOGS)), st.booleans(), st.integers(0, 1 << 30))
def test_a_mangled_log_gives_no_wrong_figure_without_a_doubt(name, other, same_program, seed):
    one = LOGS[name](0.5)
    second = LOGS[name if same_program else other](0.8)
    text = mangled(random.Random(seed), one, second)
    assert wrong(figures(text.encode()), (one, second)) == []


def accepted(entry: dict) -> list[tuple[float, str]]:
    return [
        (each["throughput"], kind(each.get("unit", "samples/s")))
        for each in (entry, *entry.get("also", []))
        if "throughput" in each
    ]


def kind(unit: str) -> str:
    return "tokens" if unit.startswith(("tok", "word")) else "samples"


@pytest.mark.skipif(not CORPUS.is_dir(), reason="the corpus of real logs is not beside this checkout")
def test_every_log_of_the_corpus_says_what_was_worked_out_by_hand():
    mistakes = []
    for name, entry in json.loads((CORPUS / "EXPECTED.json").read_text()).items():
        readings = figures((CORPUS / name).read_bytes())
        given_figures = [(f.throughput, kind(f.unit)) for f in readings if f.throughput is not None]
        fits = [
            any(
                unit == right and abs(value / expected - 1) <= entry.get("tolerance", 0.05)
                for expected, right in accepted(entry)
            )
            for value, unit in given_figures
        ]
        needed = accepted(entry) and not entry.get("may_refuse") and "refuse" not in entry
        if not all(fits) or (needed and not fits):
            mistakes.append((name, given_figures))
        if entry.get("doubts") and not any(figure.doubts for figure in readings):
            mistakes.append((name, "no doubt"))
    assert mistakes == []
