"""How long a plan will take: from earlier trials of the same cases, else from arithmetic."""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path

from trainmark.store.run import all_runs
from trainmark.suite.model import Case, Command
from trainmark.suite.plan import Plan

START_SECONDS = 12.0
# What eager training gets of a device, within a factor of two: a CPU core, and a GPU by precision.
CORE_FLOPS = 30e9
GPU_FLOPS = {"fp32": 15e12, "tf32": 40e12, "amp": 80e12, "bf16": 80e12}
RECENT_RUNS = 5


def history(runs: Path) -> dict[str, float]:
    """Median seconds of a trial by case, over the latest runs."""
    seen: dict[str, list[float]] = defaultdict(list)
    for run in all_runs(runs)[-RECENT_RUNS:]:
        for record in run.records():
            seen[record.spec.case].append(record.seconds)
    return {case: statistics.median(seconds) for case, seconds in seen.items()}


def trial_seconds(case: Case, known: Mapping[str, float]) -> float | None:
    """None for a program of the user's that has never run here."""
    if case.slug in known:
        return known[case.slug]
    workload = None if isinstance(case.workload, Command) else case.family.workload
    flops_of = None if workload is None else workload.hardware_flops or workload.flops
    if workload is None or flops_of is None or case.precision is None or case.batch_per_device is None:
        return None
    axes = dict(case.axes)
    samples = case.batch_per_device * workload.samples_per_item(axes) * case.rules.steps
    flops = flops_of(axes) * samples
    if case.device == "cuda":
        return START_SECONDS + flops / GPU_FLOPS[case.precision]
    return START_SECONDS + flops / (CORE_FLOPS * (case.threads or case.fair_threads or 1))


def plan_seconds(plan: Plan, known: Mapping[str, float]) -> float | None:
    """The sum over the trials that are sure to run; None where one of them cannot be told."""
    each = [trial_seconds(trial.case, known) for trial in plan.certain()]
    estimates = [seconds for seconds in each if seconds is not None]
    return sum(estimates) if len(estimates) == len(each) else None
