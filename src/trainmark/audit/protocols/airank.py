"""AI-Rank: time to train, throughput after the warm-up, best accuracy, speed-up, one log a device count.

Read from the lines that its rules lay down; where a log has none, as most submitted ones, from DLLogger's.
"""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import Any, NamedTuple

from trainmark.audit.protocols.protocol import (
    DATE_TIME,
    BatchWindow,
    ProtocolDoubt,
    Reading,
    files_in,
    lines_of,
    number_in_name,
    seconds_between,
)
from trainmark.base.errors import UserError

SPEC = re.compile(r"- AI-Rank-log (\d+(?:\.\d+)?) (.*)")
ACCURACY = re.compile(r"eval_accuracy:(\d+(?:\.\d+)?)")
TARGET_TIME = re.compile(r"target_quality_time:(\d+(?:\.\d+)?)")
RATE = re.compile(r"avg_ips:(\d+(?:\.\d+)?)")
DLL_STEP = re.compile(rf"({DATE_TIME}) - Epoch: \d+ Iteration: ")
DLL_EPOCH = re.compile(rf"({DATE_TIME}) - Epoch: \d+  train\.loss .*val\.top1 : (\d+(?:\.\d+)?) %")
DLL_SUMMARY = re.compile(rf"({DATE_TIME}) - Summary: .*?train\.total_ips : (\d+(?:\.\d+)?) ")
# Targets of the software track in percent, as of May 2021; those of one accuracy only.
TARGETS = {
    "resnet50": 75.9,
    "yolov3": 34.8,
    "deeplab": 78.5,
    "hrnet": 78.0,
    "bert": 71.2,
    "tsm": 71.1,
    "deepfm": 78.8,
    "wide": 79.5,
    "word2vec": 60.0,
}


class RunFacts(NamedTuple):
    """What one log tells, times in seconds from its beginning, accuracies in percent."""

    evaluations: list[tuple[float, float]]
    total: float | None
    target_time: float | None
    throughput: float | None
    conforming: bool


def run_facts(lines: list[str]) -> RunFacts | None:
    events = [(float(match[1]), match[2]) for line in lines if (match := SPEC.search(line))]
    return _spec(events) if events else _dllogger(lines)


def _spec(events: list[tuple[float, str]]) -> RunFacts:
    begin = next((moment for moment, text in events if text.startswith("test_begin")), events[0][0])
    finish = next((moment for moment, text in events if text.startswith("test_finish")), None)
    text = "\n".join(text for _, text in events)
    target, rate = TARGET_TIME.search(text), RATE.search(text)
    evaluations = [
        (moment - begin, float(match[1])) for moment, text in events if (match := ACCURACY.search(text))
    ]
    # The rules' example prints fractions, some logs percent.
    scale = 100 if evaluations and max(value for _, value in evaluations) <= 1 else 1
    return RunFacts(
        [(moment, value * scale) for moment, value in evaluations],
        finish - begin if finish is not None else None,
        float(target[1]) if target else None,
        float(rate[1]) if rate else None,
        conforming=finish is not None and rate is not None,
    )


def _dllogger(lines: list[str]) -> RunFacts | None:
    steps = [match[1] for line in lines if (match := DLL_STEP.search(line))]
    epochs = [(match[1], float(match[2])) for line in lines if (match := DLL_EPOCH.search(line))]
    summaries = [match for line in lines if (match := DLL_SUMMARY.search(line))]
    if not steps or not epochs:
        return None
    evaluations = [(_seconds(steps[0], moment), value) for moment, value in epochs]
    if not summaries:
        return RunFacts(evaluations, None, None, None, conforming=False)
    end = summaries[-1]
    return RunFacts(evaluations, _seconds(steps[0], end[1]), None, float(end[2]), conforming=False)


def _seconds(begin: str, end: str) -> float:
    seconds = seconds_between(begin, end)
    return math.nan if seconds is None else seconds


def read(folder: Path, window: BatchWindow) -> Reading:
    """By model and device count; time to train is null where the target is unknown or was not reached."""
    table: dict[str, Any] = {}
    doubts: list[ProtocolDoubt] = []
    for path in files_in(folder):
        facts, devices = run_facts(lines_of(path)), number_in_name(path, "devices")
        if facts is None or devices is None:
            doubts.append(
                ProtocolDoubt("not-read", f"{path.name}: no AI-Rank line, or no GPUxN in its name: left out.")
            )
            continue
        doubts += _doubts(path, facts)
        reached = facts.target_time if facts.target_time is not None else _reached(facts, _target(path))
        table.setdefault(model_of(path), {})[str(devices)] = {
            "time2train": reached and round(reached, 3),
            "total_use_time": facts.total and round(facts.total, 3),
            "throughput": facts.throughput,
            "accuracy": round(max((value for _, value in facts.evaluations), default=0.0), 4) or None,
        }
    if not table:
        raise UserError(f"{folder}: no log that AI-Rank's rules can be applied to.")
    return Reading({model: _with_speedups(rows) for model, rows in sorted(table.items())}, doubts)


def model_of(path: Path) -> str:
    """`resnet50/log/GPUx8.log`, or `resnet50_log_GPUx8.log`, or the folder."""
    if path.parent.name in {"log", "logs"}:
        return path.parent.parent.name
    prefix = re.split(r"_?(?:logs?_)?GPUx", path.name)[0]
    return prefix or path.parent.name


def _with_speedups(rows: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """The rules' speed-up: the time to train of one device over that of n."""
    single = rows.get("1", {}).get("time2train")
    for devices, row in rows.items():
        own = row["time2train"]
        row["speedup"] = round(single / own, 2) if single and own and devices != "1" else None
    return {key: rows[key] for key in sorted(rows, key=int)}


def _target(path: Path) -> float | None:
    return next((target for model, target in TARGETS.items() if model in model_of(path).lower()), None)


def _reached(facts: RunFacts, target: float | None) -> float | None:
    if target is None:
        return None
    return next((moment for moment, value in facts.evaluations if value >= target), None)


def _doubts(path: Path, facts: RunFacts) -> list[ProtocolDoubt]:
    doubts = []
    if not facts.conforming:
        doubts.append(
            ProtocolDoubt(
                "not-conforming", f"{path.name}: lacks lines that AI-Rank's rules ask for; read as it is."
            )
        )
    target = _target(path)
    own = _reached(facts, target)
    if facts.target_time is None and own is None:
        doubts.append(
            ProtocolDoubt(
                "target-not-reached", f"{path.name}: no evaluation reaches a target that is known here."
            )
        )
    elif own and facts.total and facts.total > own:
        doubts.append(
            ProtocolDoubt(
                "whole-run-is-longer",
                f"{path.name}: the target of {target} % is reached after {own:.0f} s of {facts.total:.0f} s; "
                "a published time to train may be that of the whole run.",
            )
        )
    return doubts
