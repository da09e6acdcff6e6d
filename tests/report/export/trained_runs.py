"""Runs of trainings to a target, with the events and the figures that the measuring makes of them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from fabricated_runs import fabricate, keep, record
from finish_streams import killed, training

from trainmark.events import stream
from trainmark.measure.trace import trace_of
from trainmark.measure.trial import WindowRules, measure_trial
from trainmark.store.run import RunFolder


def trained_run(runs: Path, name: str, seeds: int = 3, kill: bool = False, **changes: Any) -> RunFolder:
    """One case; each seed is a little slower than the one before."""
    run = fabricate(runs, name, {})
    for repeat in range(1, seeds + 1):
        changes["step_seconds"] = 0.5 + 0.01 * repeat
        changes["facts"] = {"seed": repeat}
        events = killed(stop=17, resumed=12, **changes) if kill else training(**changes)
        ranks = changes.get("ranks", 1)
        trial_record = record(f"pytorch-fp32-b32-1n{ranks}g", repeat, 60.0, f"1n{ranks}g")
        key = replace(trial_record.key, data="images", loader="host", recipe="ai-rank", target="top1=0.5")
        figure = measure_trial(trace_of(events), WindowRules(10), key=key)
        folder = keep(run, replace(trial_record, key=key, figure=figure, started=1_700_000_990.0))
        (folder / "events").mkdir()
        for rank in range(ranks):
            own = [event for event in events if event.rank == rank]
            stream.write(folder / "events" / f"rank{rank}.jsonl", own)
    return run
