"""MLPerf's score: minutes from run_start to run_stop, the best and the worst dropped, the rest averaged."""

from __future__ import annotations

import json
import math
import re
from collections import defaultdict
from pathlib import Path
from statistics import fmean
from typing import Any, NamedTuple

from trainmark.audit.protocols.protocol import (
    BatchWindow,
    ProtocolDoubt,
    Reading,
    files_in,
    lines_of,
)
from trainmark.base.errors import UserError

LINE = re.compile(r":::MLLOG (\{.*\})")
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
        if match := LINE.search(line):
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


def read(folder: Path, window: BatchWindow) -> Reading:
    minutes: dict[tuple[str, str], list[float]] = defaultdict(list)
    doubts: list[ProtocolDoubt] = []
    for path in files_in(folder):
        result = result_of(path)
        if result is None:
            continue
        minutes[result.benchmark, result.system].append(result.minutes)
        if math.isinf(result.minutes):
            doubts.append(
                ProtocolDoubt(
                    "run-failed", f"{path.name}: no run_stop with success, so it counts as the worst."
                )
            )
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
            doubts.append(
                ProtocolDoubt(
                    "no-score",
                    f"{benchmark} {system}: {len(values)} runs give no olympic mean, three would.",
                )
            )
    return Reading(table, doubts)
