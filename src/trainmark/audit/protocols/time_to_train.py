"""Rules for the time to a target quality: AI-Rank's and MLPerf's.

AI-Rank: time to train, throughput after the warm-up, best accuracy, speed-up, one log a device count; from
the lines that its rules lay down, and where a log has none, as most submitted ones, from DLLogger's. MLPerf:
minutes from run_start to run_stop, the best and the worst dropped, the rest averaged.
"""

from __future__ import annotations

import json
import math
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from statistics import fmean
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


def read_airank(folder: Path, window: BatchWindow) -> Reading:
    """By model and device count; time to train is null where the target is unknown or was not reached."""
    table: dict[str, Any] = {}
    doubts: list[ProtocolDoubt] = []
    for path in files_in(folder):
        facts, devices = run_facts(lines_of(path)), number_in_name(path, "devices")
        if facts is None or devices is None:
            message = f"{path.name}: no AI-Rank line, or no GPUxN in its name: left out."
            doubts.append(ProtocolDoubt("not-read", message))
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


def _doubts(path: Path, facts: RunFacts) -> Iterator[ProtocolDoubt]:
    if not facts.conforming:
        message = f"{path.name}: lacks lines that AI-Rank's rules ask for; read as it is."
        yield ProtocolDoubt("not-conforming", message)
    target = _target(path)
    own = _reached(facts, target)
    if facts.target_time is None and own is None:
        message = f"{path.name}: no evaluation reaches a target that is known here."
        yield ProtocolDoubt("target-not-reached", message)
    elif own and facts.total and facts.total > own:
        message = (
            f"{path.name}: the target of {target} % is reached after {own:.0f} s of {facts.total:.0f} s; "
            "a published time to train may be that of the whole run."
        )
        yield ProtocolDoubt("whole-run-is-longer", message)


MLLOG_LINE = re.compile(r":::MLLOG (\{.*\})")
# The training rules ask for five runs of an image classifier, and olympic scoring for at least three.
FEWEST_RUNS = 3


class MlperfRun(NamedTuple):
    """`minutes` is infinite for a run that did not end in success, which makes it the worst."""

    benchmark: str
    system: str
    minutes: float


def olympic_mean(values: list[float]) -> float | None:
    """None below three values; infinite where more than one run failed."""
    if len(values) < FEWEST_RUNS:
        return None
    return fmean(sorted(values)[1:-1])


def result_of(path: Path) -> MlperfRun | None:
    """None where the file has no MLLOG line at all; Google's lines have no event_type, SIAT's another one."""
    seen: dict[str, dict[str, Any]] = {}
    for line in lines_of(path):
        if match := MLLOG_LINE.search(line):
            try:
                event = json.loads(match[1])
            except json.JSONDecodeError:
                continue
            seen[event.get("key", "")] = event
    if not seen:
        return None
    benchmark = str(seen.get("submission_benchmark", {}).get("value") or path.parent.name)
    names = (seen.get(key, {}).get("value") for key in ("submission_org", "submission_platform"))
    system = ", ".join(str(value) for value in names if value)
    start, stop = seen.get("run_start"), seen.get("run_stop")
    if start is None or stop is None or '"success"' not in json.dumps(stop.get("metadata")):
        return MlperfRun(benchmark, system, math.inf)
    begun, ended = start.get("time_ms"), stop.get("time_ms")
    if not isinstance(begun, (int, float)) or not isinstance(ended, (int, float)):
        return MlperfRun(benchmark, system, math.inf)
    return MlperfRun(benchmark, system, (ended - begun) / 60_000)


def read_mlperf(folder: Path, window: BatchWindow) -> Reading:
    minutes: dict[tuple[str, str], list[float]] = defaultdict(list)
    doubts: list[ProtocolDoubt] = []
    for path in files_in(folder):
        result = result_of(path)
        if result is None:
            continue
        minutes[result.benchmark, result.system].append(result.minutes)
        if math.isinf(result.minutes):
            message = f"{path.name}: no run_stop with success, so it counts as the worst."
            doubts.append(ProtocolDoubt("run-failed", message))
    if not minutes:
        raise UserError(f"{folder}: no :::MLLOG line in any file.")
    table: dict[str, Any] = {}
    for (benchmark, system), values in sorted(minutes.items()):
        score = olympic_mean(values)
        finite = score is not None and math.isfinite(score)
        table.setdefault(benchmark, {})[system] = {
            "runs": len(values),
            "minutes": [round(value, 3) if math.isfinite(value) else None for value in sorted(values)],
            "olympic_mean_minutes": round(score, 3) if score is not None and finite else None,
        }
        if not finite:
            message = f"{benchmark} {system}: {len(values)} runs give no olympic mean, three would."
            doubts.append(ProtocolDoubt("no-score", message))
    return Reading(table, doubts)
