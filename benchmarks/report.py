"""The index and every report format over a run of 10,000 trials, in a process of its own."""

from __future__ import annotations

import gc
import json
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks import child, trials
from benchmarks.row import Row, from_repeats
from trainmark.__main__ import COLLECTIONS

MOST_SECONDS = 10.0
MOST_MB = 500.0


def measure(cases: int = 200, trials_a_case: int = 50, repeats: int = 5) -> list[Row]:
    with tempfile.TemporaryDirectory() as folder:
        trials.write_run(Path(folder), cases, trials_a_case)
        done = [child.run("benchmarks.report", folder) for _ in range(repeats)]
    parts: list[dict[str, float]] = [each["seconds"] for each in done]
    whole = f"report: all of it, {cases * trials_a_case:,} trials"
    return [
        *(from_repeats(f"report: {part}", [each[part] for each in parts], "s") for part in parts[0]),
        from_repeats(whole, [sum(each.values()) for each in parts], "s", MOST_SECONDS),
        from_repeats("report: memory at most", [each["memory_mb"] for each in done], "MB", MOST_MB),
    ]


def _report(runs: Path) -> None:
    gc.set_threshold(*COLLECTIONS)
    seconds: dict[str, float] = {}

    def timed(part: str, work: Callable[[], Any]) -> Any:
        began = time.perf_counter()
        value = work()
        seconds[part] = time.perf_counter() - began
        return value

    def imports() -> None:
        import trainmark.cli.report
        import trainmark.pages.run.page
        import trainmark.store.index
        import trainmark.store.report  # noqa: F401

    timed("imports", imports)
    from trainmark.cli.report import render
    from trainmark.store import index
    from trainmark.store.report import report_of
    from trainmark.store.run import find_run

    timed("index", lambda: index.build(runs))
    report = timed("results", lambda: report_of(find_run("latest", runs)))
    for kind in ("html", "md", "json", "csv"):
        timed(kind, partial(render, report, kind, "en"))
    print(json.dumps({"seconds": seconds, "memory_mb": child.memory_peak_mb()}))


if __name__ == "__main__":
    _report(Path(sys.argv[1]))
