"""Explaining from Python and for the command: a case of a run, a program, a trace, or two of them."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, closing, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from trainmark.api.runs import Run
from trainmark.api.shown import Shown
from trainmark.explain import as_json
from trainmark.explain.difference import ExplanationDifference, difference
from trainmark.explain.difference_page import difference_page
from trainmark.explain.explained_trial import Explained, explain_trace, explain_trial, stored_explanation
from trainmark.explain.profiled_trial import (
    DEFAULT_STEPS,
    ensure_profile,
    profile_case,
    profile_run,
    profiled_before,
    with_one_trial,
)
from trainmark.launch.options import LaunchOptions, stored_options
from trainmark.runner.prepare import prepare_text
from trainmark.runner.progress import NoDisplay, RunDisplay
from trainmark.runner.run import new_run
from trainmark.store.files import StoreError
from trainmark.store.run import RunFolder, find_case, find_run
from trainmark.suite.program import name_of, program_suite, require_script
from trainmark.view.blocks import Page

THIS_MACHINE = LaunchOptions()
Display = Callable[[], AbstractContextManager[RunDisplay]]


def no_display() -> AbstractContextManager[RunDisplay]:
    return nullcontext(NoDisplay())


TRACE_SUFFIXES = (".json", ".json.gz", ".trace", ".gz")


@dataclass(frozen=True)
class CaseTarget:
    """A case of a run; without a name the only one that the run has."""

    run: RunFolder
    case: str | None = None


@dataclass(frozen=True)
class TraceTarget:
    """A trace file, or the folder that profiled ranks wrote into."""

    path: Path


Target = CaseTarget | TraceTarget


def parse_targets(words: Sequence[str], runs: Path) -> tuple[Target, ...]:
    """Return one target, or two to compare: `RUN`, `RUN CASE`, `A B`; each may be `RUN/CASE` or a trace."""
    if len(words) > 2:
        raise click.UsageError("explain takes one target or two to compare; write a case as RUN/CASE.")
    if not words:
        return (CaseTarget(find_run("latest", runs)),)
    first = parse_target(words[0], runs)
    if len(words) == 1:
        return (first,)
    if isinstance(first, CaseTarget) and first.case is None and words[1] in first.run.case_names():
        return (CaseTarget(first.run, words[1]),)
    try:
        return first, parse_target(words[1], runs)
    except StoreError as error:
        if isinstance(first, CaseTarget) and first.case is None:
            known = ", ".join(first.run.case_names()) or "none"
            raise StoreError(
                f"'{words[1]}' is no run, no trace and no case of {first.run.path.name}, which has {known}."
            ) from error
        raise


def parse_target(word: str, runs: Path) -> Target:
    path = Path(word)
    is_trace = path.is_file() or (word.endswith(TRACE_SUFFIXES) and not path.is_dir())
    return (
        TraceTarget(path) if is_trace or any(path.glob("rank*.json")) else CaseTarget(*find_case(word, runs))
    )


@dataclass(frozen=True)
class ExplainedDifference(Shown):
    """What makes the difference between two explanations."""

    difference: ExplanationDifference

    def page(self) -> Page:
        return difference_page(self.difference)

    def to_dict(self) -> dict[str, Any]:
        return as_json.difference_tree(self.difference)


def explain(
    *targets: str | Path | Run,
    runs: str | Path = "runs",
    again: bool = False,
    can_change: bool = False,
    profile_steps: int = DEFAULT_STEPS,
    choice: LaunchOptions = THIS_MACHINE,
    display: Display = no_display,
) -> Explained | ExplainedDifference:
    """Explain a run's case (`RUN`, `RUN CASE`, `RUN/CASE`), a trace, or the difference of two of them.

    What was explained before is read; `again` profiles a new trial, and `can_change` gives a case with the
    situation that changes of it are made in.
    """
    words = [str(target.path if isinstance(target, Run) else target) for target in targets]
    explained = [
        explain_trace(target.path)
        if isinstance(target, TraceTarget)
        else _of_case(target, again, can_change, profile_steps, choice, display)
        for target in parse_targets(words, Path(runs))
    ]
    if len(explained) == 1:
        return explained[0]
    before, after = (one.explanation for one in explained)
    return ExplainedDifference(difference(before, after))


def explain_program(
    words: Sequence[str],
    about: Mapping[str, Any],
    *,
    name: str | None = None,
    runs: str | Path = "runs",
    profile_steps: int = DEFAULT_STEPS,
    choice: LaunchOptions = THIS_MACHINE,
    display: Display = no_display,
) -> Explained:
    """Measure and profile a program, the words of its command line; `about` says how it is measured."""
    text = program_suite(words, about)
    if choice.is_local:
        require_script(words)
    prepared = with_one_trial(prepare_text(text, name_of(words), str(Path.cwd()), (), choice))
    with closing(prepared), display() as shown:
        run = new_run(prepared, Path(runs), name, shlex.join(["trainmark", *sys.argv[1:]]))
        trial = profile_run(run, prepared, shown, profile_steps)
        ensure_profile(run, prepared, trial, shown, profile_steps)
    return explain_trial(run, trial)


def _of_case(
    target: CaseTarget, again: bool, can_change: bool, steps: int, choice: LaunchOptions, display: Display
) -> Explained:
    """Read what was explained before, or take a trial of the case; what is to be changed must run here."""
    run = target.run
    if not again and not can_change and (known := stored_explanation(run, target.case)) is not None:
        return known
    run.require_whole()
    if run.cluster is not None:
        choice = stored_options(run.cluster).changed_by(choice)
    prepared = with_one_trial(
        prepare_text(run.suite, "suite.yaml", run.info.folder, choice=choice), target.case
    )
    with closing(prepared):
        (case,) = prepared.plan.cases
        trial = None if again else profiled_before(run, case)
        if trial is None:
            with display() as shown:
                trial = profile_case(run, prepared, shown, steps)
                ensure_profile(run, prepared, trial, shown, steps)
    return explain_trial(run, trial)
