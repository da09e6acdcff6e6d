"""The runs of foreign logs as scripts and people see them."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import Any

from trainmark.measure.copies import copies
from trainmark.measure.doubt import Doubt, DoubtCode
from trainmark.measure.logged import LogFacts, LoggedFigure, logged_figure
from trainmark.readers.logged import LoggedRun
from trainmark.readers.read import Log
from trainmark.report import number
from trainmark.report.label import rate_unit
from trainmark.report.text import aligned
from trainmark.report.visible import one_line

RIGHT_ALIGNED = frozenset({2, 4, 5, 6})
HEADER = ("log", "format", "devices", "precision", "batch", "steps", "throughput", "interval", "doubts")


def as_dicts(logs: Sequence[Log]) -> list[dict[str, Any]]:
    """One dictionary a run; what a log does not say is None."""
    runs = [run for log in logs for run in log.runs]
    figures = [logged_figure(run.columns(), LogFacts(**run.facts())) for run in runs]
    same = copies([run.columns() for run in runs])
    return [
        _as_dict(run, figure, [f"run {runs[o].number} of {runs[o].source}" for o in same.get(index, ())])
        for index, (run, figure) in enumerate(zip(runs, figures, strict=True))
    ]


def _as_dict(run: LoggedRun, figure: LoggedFigure, copied: Sequence[str]) -> dict[str, Any]:
    interval = figure.interval
    batch = figure.batch_per_device
    doubts = [*figure.doubts, *_copied(copied)]
    return {
        "source": run.source,
        "format": run.format.name,
        "framework": run.settings.get("framework") or run.format.framework,
        "steps": figure.steps,
        "world_size": figure.world_size,
        "batch_per_device": int(batch) if batch is not None and batch == int(batch) else batch,
        "precision": run.settings.get("precision"),
        "throughput": {
            "value": figure.throughput,
            "low": interval.low if interval else None,
            "high": interval.high if interval else None,
            "unit": rate_unit(figure.unit),
            "scope": "global",
        },
        "final_loss": figure.final_loss,
        "top1": run.top1,
        "doubts": [{"code": doubt.code.value, "message": doubt.message} for doubt in doubts],
    }


def _copied(sources: Sequence[str]) -> Iterator[Doubt]:
    if sources:
        yield Doubt(
            DoubtCode.COPIED_LOGS,
            f"Its progress lines are also those of {', '.join(sources)}: count it once.",
        )


def lines(logs: Sequence[Log], runs: Sequence[dict[str, Any]]) -> Iterator[str]:
    """A table of the runs, what the formats were told by, and the doubts in words."""
    common = _common_folder([log.name for log in logs])
    yield from aligned([HEADER, *(_cells(run, common) for run in runs)], RIGHT_ALIGNED)
    yield ""
    if common:
        yield one_line(f"below {common}")
    for log in logs:
        yield one_line(_recognised(log, common))
    for run in runs:
        for doubt in run["doubts"]:
            yield one_line(f"{run['source'].removeprefix(common)}: {doubt['code']}: {doubt['message']}")


def _common_folder(names: Sequence[str]) -> str:
    """What the names of several logs begin with, up to a folder; it would fill half of the table."""
    try:
        folder = os.path.commonpath(names) + "/"
    except ValueError:  # whole paths beside relative ones
        return ""
    return folder if all(name.startswith(folder) for name in names) else ""


def _cells(run: dict[str, Any], common: str) -> list[str]:
    throughput = run["throughput"]
    value = throughput["value"]
    return [
        one_line(run["source"].removeprefix(common)),
        run["format"],
        _or_missing(run["world_size"]),
        one_line(_or_missing(run["precision"])),
        _or_missing(run["batch_per_device"]),
        f"{run['steps']:,}",
        number.MISSING if value is None else f"{number.throughput(value)} {throughput['unit']}",
        number.bounds(throughput["low"], throughput["high"]),
        ", ".join(doubt["code"] for doubt in run["doubts"]),
    ]


def _recognised(log: Log, common: str) -> str:
    told = f"{log.name.removeprefix(common)}: {log.format.title}"
    if log.recognition is None:
        told += ", as you said"
    else:
        told += f", recognised by {log.recognition.matches} lines ({log.recognition.confidence:.0%} sure)"
    if len(log.runs) > 1:
        told += f"; it holds {len(log.runs)} runs"
    if damaged := sum(run.damaged_lines for run in log.runs):
        told += f"; {damaged} overlong lines were cut"
    return f"{told}."


def _or_missing(value: Any) -> str:
    return number.MISSING if value is None else str(value)
