"""What the shell offers after TAB: suites, runs, trials, frameworks and precisions."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

import click
from click.shell_completion import CompletionItem


def complete_suite(context: click.Context, option: click.Parameter, typed: str) -> list[CompletionItem]:
    """Offer the built-in suites and files; after --resume, the runs."""
    from trainmark.suite.load import built_in_names

    if context.params.get("resume"):
        return complete_run(context, option, typed)
    return [*_offered(built_in_names(), typed), CompletionItem(typed, type="file")]


def complete_built_in_suite(
    context: click.Context, option: click.Parameter, typed: str
) -> list[CompletionItem]:
    from trainmark.suite.load import built_in_names

    return _offered(built_in_names(), typed)


def complete_run(context: click.Context, option: click.Parameter, typed: str) -> list[CompletionItem]:
    """Offer `latest` and the names of the runs, the newest first."""
    from trainmark.store.run import all_runs

    names = [run.path.name for run in reversed(all_runs(_runs(context)))]
    return _offered(["latest", *names] if names else [], typed)


def complete_trial(context: click.Context, option: click.Parameter, typed: str) -> list[CompletionItem]:
    """Offer the finished trials of the run that was named."""
    from trainmark.base.errors import UserError
    from trainmark.store.run import find_run
    from trainmark.store.trial import finished_trials

    try:
        run = find_run(str(context.params.get("run") or "latest"), _runs(context))
    except UserError:
        return []
    return _offered((f"{trial.parent.name}/{trial.name}" for trial in finished_trials(run.trials)), typed)


def complete_framework(context: click.Context, option: click.Parameter, typed: str) -> list[CompletionItem]:
    from trainmark.machine.frameworks.locks import names

    return _listed(names(), typed)


def complete_workload_or_framework(
    context: click.Context, option: click.Parameter, typed: str
) -> list[CompletionItem]:
    from trainmark.machine.frameworks.locks import names
    from trainmark.workloads.registry import families

    return _offered([*names(), *families()], typed)


def complete_precision(context: click.Context, option: click.Parameter, typed: str) -> list[CompletionItem]:
    from trainmark.suite.fields import PRECISIONS

    return _listed(PRECISIONS, typed)


def _runs(context: click.Context) -> Path:
    return Path(context.params.get("runs") or os.environ.get("TRAINMARK_RUNS") or "runs")


def _offered(names: Iterable[str], typed: str) -> list[CompletionItem]:
    return [CompletionItem(name) for name in names if name.startswith(typed)]


def _listed(names: Iterable[str], typed: str) -> list[CompletionItem]:
    """Complete the last word of a list with commas."""
    before, comma, last = typed.rpartition(",")
    chosen = before.split(",")
    return [
        CompletionItem(f"{before}{comma}{name}")
        for name in names
        if name.startswith(last) and name not in chosen
    ]
