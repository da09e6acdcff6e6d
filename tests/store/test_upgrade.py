"""What version 0.1.0 wrote is read under the names of this one, and gives the same figures."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from trainmark.base.typed_json import decode as from_json
from trainmark.base.typed_json import encode
from trainmark.cli.report import render
from trainmark.events import Mark, RunStart
from trainmark.events.stream import decode, upgraded_finish
from trainmark.measure.figure import Finish
from trainmark.metric import declared_metrics
from trainmark.store.report import report_of
from trainmark.store.run import find_run
from trainmark.workloads import registry

RUNS = json.loads(Path(__file__).with_name("runs_0_1_0.json").read_text(encoding="utf-8"))
METRICS = registry.find("resnet50").workload.metrics

# As 0.1.0 wrote it into figure.json.
FINISH = {
    "target": "top1=0.5",
    "reached": True,
    "time2train": 29.0,
    "airank_seconds": 36.0,
    "epochs_to_target": 1,
    "best_top1": 0.6,
    "best_top5": 0.9,
    "best_epoch": 1,
    "train_rate": None,
    "first_epoch_rate": 32.0,
    "whole_rate": 30.0,
    "airank_rate": None,
    "seconds": 29.0,
    "startup_seconds": 7.0,
    "evaluation_seconds": 3.0,
    "checkpoint_seconds": 0.0,
    "checkpoints": 0,
    "resumed": 0,
    "lost_seconds": 0.0,
    "training_images": 320,
    "validation_images": 500,
    "epochs": [{"epoch": 0, "steps": 10, "begin": 0.0, "end": 10.0, "seconds": 10.0, "images": 320.0}],
    "evaluations": [
        {"epoch": 0, "step": 10, "begin": 10.0, "end": 13.0, "top1": 0.6, "top5": 0.9, "images": 500}
    ],
}


def test_a_stored_finish_is_read_with_its_metrics():
    finish = from_json(Finish, upgraded_finish(FINISH))
    assert finish.metrics == METRICS
    assert finish.best == finish.evaluations[0].scores == (("top1", 0.6), ("top5", 0.9))
    assert (finish.training_samples, finish.validation_samples) == (320, 500)
    assert (finish.epochs[0].samples, finish.evaluations[0].samples) == (320.0, 500)
    assert finish.crossing == finish.evaluations[0]


def test_what_this_version_writes_is_read_back_as_it_was():
    finish = from_json(Finish, upgraded_finish(FINISH))
    written = json.loads(json.dumps(encode(finish)))
    assert from_json(Finish, upgraded_finish(written)) == finish
    assert (written["best_top1"], written["evaluations"][0]["top5"]) == (0.6, 0.9)


def test_a_damaged_one_is_left_for_the_decoder_to_refuse():
    for damage in (5, [5], None):
        assert upgraded_finish({**FINISH, "epochs": damage})["epochs"] == damage


def test_its_events_have_metrics_and_samples():
    facts = {"epochs": 3, "training_images": 320, "validation_images": 500}
    start = decode(json.dumps({"event": "run_start", "rank": 0, "world_size": 1, "facts": facts}))
    assert isinstance(start, RunStart)
    assert declared_metrics(start.facts) == METRICS
    assert (start.facts["training_samples"], start.facts["validation_samples"]) == (320, 500)
    mark = decode(json.dumps({"event": "eval", "rank": 0, "facts": {"top1": 0.5, "images": 500}}))
    assert isinstance(mark, Mark) and mark.facts == {"top1": 0.5, "samples": 500}


def test_a_program_that_declares_its_own_metrics_keeps_them():
    facts = {"epochs": 3, "metrics": {"perplexity": "lower"}}
    start = decode(json.dumps({"event": "run_start", "rank": 0, "world_size": 1, "facts": facts}))
    assert start.facts == facts


@pytest.fixture
def runs(tmp_path) -> Path:
    """Two runs of 0.1.0, one of a program with the probe and one of a training on images."""
    for name, text in RUNS.items():
        (tmp_path / "runs" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "runs" / name).write_text(text, encoding="utf-8")
    return tmp_path / "runs"


def leaves(tree: Any, place: str = "") -> dict[str, Any]:
    if isinstance(tree, (dict, list)):
        items = tree.items() if isinstance(tree, dict) else enumerate(tree)
        return {name: leaf for key, part in items for name, leaf in leaves(part, f"{place}.{key}").items()}
    return {place: tree}


def reported(run: str, runs: Path) -> dict[str, Any]:
    return leaves(json.loads(render(report_of(find_run(run, runs)), "json", "en")))


@pytest.mark.parametrize("run", ["probe", "finish"])
def test_a_run_folder_gives_the_report_that_0_1_0_made_of_it(runs, run):
    before = {
        place: value
        for place, value in leaves(json.loads(RUNS[f"{run}/report.json"])).items()
        # Words have changed since, and nothing is published of a program of one's own.
        if not place.endswith(".message") and not (run == "probe" and place.endswith(".published"))
    }
    assert before.items() <= reported(run, runs).items()
