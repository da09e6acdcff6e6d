"""`trainmark run --dry-run`: the trials in their order, each with its command, and what will not run."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from trainmark.runner.preflight.prepare import Prepared


WORTH_SAYING_SECONDS = 60.0


def show_plan(prepared: Prepared, runs: Path, as_json: bool) -> None:
    from trainmark.report.format.number import counted

    plan = _plan(prepared, runs)
    if as_json:
        click.echo(json.dumps(plan, indent=2))
        return
    for number, trial in enumerate(plan["trials"], 1):
        click.echo(f"{number:>4}  {trial['id']}")
        for node, command in trial["commands"]:
            click.echo(f"      {node + ': ' if len(trial['commands']) > 1 else ''}{command}")
    for skip in plan["skipped"]:
        click.echo(f"skip  {skip['case']}: {skip['reason']}")
    more = plan["most_trials"] - len(plan["trials"])
    count = counted(len(plan["trials"]), "trial") + (
        f", up to {more} more while that is not certain enough" if more else ""
    )
    click.echo(f"{count}; {_time(plan['seconds'], plan['seconds_from'])}")


def estimated(prepared: Prepared, runs: Path) -> str:
    """Return `12 trials; about 6 min, from earlier trials`; empty where nobody knows, or it is soon over."""
    from trainmark.report.format.number import counted
    from trainmark.runner.preflight.estimate import history, plan_seconds

    known = history(runs)
    seconds = plan_seconds(prepared.plan, known)
    if seconds is None or seconds < WORTH_SAYING_SECONDS:
        return ""
    return f"{counted(len(prepared.plan.certain()), 'trial')}; {_time(seconds, _origin(prepared, known))}"


def _origin(prepared: Prepared, known: Mapping[str, float]) -> str:
    return "earlier trials" if all(case.slug in known for case in prepared.plan.cases) else "a rough guess"


def _plan(prepared: Prepared, runs: Path) -> dict[str, Any]:
    from trainmark.launch.local import LocalLauncher
    from trainmark.runner.preflight.estimate import history, plan_seconds
    from trainmark.runner.program.command import job_of

    plan = prepared.plan
    known = history(runs)

    def commands(trial: Any) -> list[tuple[str, str]]:
        folder = runs / "NAME" / "trials" / trial.case.slug / f"{trial.repeat:02d}"
        seed = prepared.plan.seed + trial.repeat - 1
        job = job_of(trial.case, folder, runs / "NAME" / "code", prepared.suite.folder, seed)
        launcher = LocalLauncher() if prepared.cluster is None else prepared.cluster.launcher
        return list(launcher.shown(job))

    certain = plan.certain()
    return {
        "suite": prepared.suite.name,
        "trials": [
            {
                "id": trial.id,
                "case": trial.case.slug,
                "command": commands(trial)[-1][1],
                "commands": commands(trial),
            }
            for trial in certain
        ],
        "skipped": [{"case": skip.case.slug, "reason": skip.reason} for skip in plan.skipped],
        "most_trials": sum(case.rules.repeats.most for case in plan.cases),
        "seconds": plan_seconds(plan, known),
        "seconds_from": _origin(prepared, known),
    }


def _time(seconds: float | None, origin: str) -> str:
    if seconds is None:
        return "time unknown: these programs have not run here yet"
    written = f"{seconds / 60:.0f} min" if seconds >= 120 else f"{seconds:.0f} s"
    return f"about {written}, from {origin}"
