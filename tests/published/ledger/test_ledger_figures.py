"""The figures of the ledger against each other."""

import json
from collections import defaultdict
from dataclasses import replace
from pathlib import Path
from statistics import fmean, median

import pytest

from trainmark.logs.ledger import load

# What sets two rows of one table apart without making them different cases.
TOPOLOGY_AND_RESULT = {
    "nodes": None,
    "devices_per_node": None,
    "accumulate": None,
    "throughput": None,
    "average": None,
    "runs": (),
    "speedup": None,
    "memory_mb": None,
    "time_to_train_s": None,
    "top1": None,
}


def families():
    """The rows of each source that differ only in their topology."""
    entries_by_case = defaultdict(dict)
    for entry in load():
        if entry.row.throughput and entry.row.devices:
            case = (entry.source, replace(entry.row, **TOPOLOGY_AND_RESULT))
            entries_by_case[case][entry.row.devices] = entry
    return entries_by_case


def test_a_speedup_follows_from_its_own_rows_unless_an_erratum_says_otherwise():
    checked = 0
    for family in families().values():
        for entry in family.values():
            if entry.row.speedup is None or 1 not in family:
                continue
            derived = entry.row.throughput / family[1].row.throughput
            agrees = abs(entry.row.speedup - derived) < 0.01
            assert agrees or entry.errata, (entry.source, entry.row.topology, entry.row.speedup, derived)
            checked += 1
    assert checked > 60


@pytest.mark.parametrize("source", ["dlperf-mindspore", "dlperf-ngc-pytorch", "oneflow-2020-08"])
def test_the_speedups_of_the_published_reports_are_right_when_rounded_as_printed(source):
    for (name, _), family in families().items():
        if name == source:
            base = family[1].row.throughput
            assert {devices: round(entry.row.throughput / base, 2) for devices, entry in family.items()} == {
                devices: entry.row.speedup for devices, entry in family.items()
            }


def test_a_throughput_is_the_median_of_its_runs_where_the_average_is_published_too():
    rows = [entry.row for entry in load() if entry.row.average]
    assert len(rows) == 11
    for row in rows:
        assert row.throughput == median(row.runs)
        assert row.average == pytest.approx(fmean(row.runs), abs=0.0051)


@pytest.mark.parametrize(
    ("source", "fact"),
    [
        ("dlperf-v1", "11233.92"),
        ("dlperf-readmes", "11331.93"),
        ("nvidia-dle-mxnet-22.10", "2.18"),
        ("airank-pytorch", "7.27"),
        ("airank-tensorflow", "75.97"),
        ("dlperf-v1", "without --amp"),
        ("milabench", "244²"),
        ("lambda", "nchw"),
        ("llm.c", "2.99e20"),
        ("llm.c", "above its peak of 312"),
        ("torchtitan", "the other way round"),
        ("llm-foundry", "17.55 % at 12,580"),
        ("nvidia-dle-bert-pytorch", "107,520 tokens/s, against 74,240"),
        ("nvidia-dle-bert-tensorflow1", "a misprint"),
    ],
)
def test_a_known_mistake_is_attached_to_the_rows_it_concerns(source, fact):
    assert any(fact in erratum for entry in load() if entry.source == source for erratum in entry.errata)


def test_our_own_figures_are_those_of_the_published_run():
    path = Path(__file__).parents[3] / "docs" / "results" / "h200" / "results.json"
    measured = json.loads(path.read_text(encoding="utf-8"))["results"]
    rows = [entry.row for entry in load() if entry.origin.kind == "trainmark"]
    assert [row.throughput for row in rows] == [round(r["throughput"]["median"], 2) for r in measured]
    assert [row.memory_mb for row in rows] == [round(r["memory_bytes"] / 2**20) for r in measured]
