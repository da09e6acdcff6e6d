"""`trainmark watch`: a suspected change measured again until it is certain."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from trainmark.base.errors import UserError
from trainmark.cli.crash import tell_next
from trainmark.cli.options import (
    OneMachineCommand,
    duration,
    is_given,
    json_option,
    lang_option,
    runs_option,
    share,
)

if TYPE_CHECKING:
    from trainmark.measure.ab import Confirmation, FactDifference
    from trainmark.runner.watch import WatchLimits
    from trainmark.runner.watch_sides import WatchFolder
    from trainmark.store.run import RunFolder
    from trainmark.view.catalogue import Lang

    Targets = tuple[tuple[RunFolder, str], tuple[RunFolder, str]]

NOTHING, REGRESSION, UNDECIDED, INTERRUPTED = 0, 1, 3, 130
FIXED = ("sides", "case", "matters", "error", "python_a", "python_b")


@dataclass(frozen=True)
class Output:
    """Where the result goes, and in which language."""

    junit: Path | None
    hook_file: Path | None
    lang: Lang
    as_json: bool


@click.command("watch", cls=OneMachineCommand)
@click.argument("sides", nargs=-1, metavar="[BEFORE AFTER]")
@click.option("--case", default="", help="The case, by its name or a part of it.")
@click.option(
    "--matters", callback=share, default="1%", show_default=True, help="The smallest change that matters."
)
@click.option(
    "--error", callback=share, default="5%", show_default=True, help="The probability of a wrong verdict."
)
@click.option(
    "--most-pairs", type=click.IntRange(1, 10_000), default=40, show_default=True,
    help="Stop undecided after so many pairs of trials.",
)  # fmt: skip
@click.option(
    "--most-time",
    callback=duration,
    metavar="TIME",
    help="Stop undecided after this much trial time: 30m, 2h.",
)
@click.option("--python-a", metavar="PATH", help="The interpreter of BEFORE, where its own has changed.")
@click.option("--python-b", metavar="PATH", help="The interpreter of AFTER, where its own has changed.")
@click.option("--name", help="Name the folder of this watch; by default by the time.")
@click.option("--resume", is_flag=True, help="Go on with a watch (--name, or the latest) where it stopped.")
@click.option(
    "--junit", type=click.Path(dir_okay=False, path_type=Path), help="Write JUnit XML to this file."
)
@click.option(
    "--hook-file",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write JSON for a chat hook to this file.",
)
@lang_option
@runs_option
@json_option
def watch_command(
    sides: tuple[str, ...],
    case: str,
    matters: float,
    error: float,
    most_pairs: int,
    most_time: float | None,
    python_a: str | None,
    python_b: str | None,
    name: str | None,
    resume: bool,
    junit: Path | None,
    hook_file: Path | None,
    lang: Lang,
    runs: Path,
    as_json: bool,
) -> int:
    """Measure the two sides of a change again, in turns, until the difference is certain.

    Without arguments it is the latest change that `trainmark history` suspects. BEFORE and AFTER are runs, or
    RUN/CASE. Each side runs the code, the suite and the variables of its run, in its own interpreter; the
    result is looked at after each pair of trials, and the probability of a wrong verdict holds all the same.

    Exit code 0: no change, an improvement, or less than what matters. 1: a regression, confirmed. 3: not
    certain within the limits. 2: bad input.

    \b
    Examples:
      trainmark watch                              the latest suspected change
      trainmark watch --case amp --matters 2%      of these cases, from 2 %
      trainmark watch monday tuesday               two runs
      trainmark watch monday tuesday --junit watch.xml --hook-file watch.json
      trainmark watch --resume                     go on after an interruption
      trainmark watch --resume --lang zh           the result in Chinese
    """
    from trainmark.runner.watch import WatchLimits
    from trainmark.runner.watch_sides import find_watch

    for option, file in (("--junit", junit), ("--hook-file", hook_file)):
        if file is not None and not file.absolute().parent.is_dir():
            raise UserError(f"there is no folder {file.parent} for {option}.")
    output = Output(junit, hook_file, lang, as_json)
    if resume:
        if fixed := [word for word in FIXED if is_given(word)]:
            option = "BEFORE AFTER" if fixed[0] == "sides" else f"--{fixed[0].replace('_', '-')}"
            raise click.UsageError(f"a resumed watch goes on as it began; leave out {option}.")
        folder = find_watch(name or "latest", runs)
        folder.extend(most_pairs if is_given("most_pairs") else None, most_time)
        return _finish(folder, output, is_new=False)
    limits = WatchLimits(matters, error, most_pairs, most_time)
    if len(sides) not in (0, 2):
        raise click.UsageError("name two runs, BEFORE and AFTER, or none for the latest suspected change.")
    chosen = _named(sides, case, runs) if sides else _suspected(case, runs)
    if chosen is None:
        _write(None, output)
        return NOTHING
    folder = _begin(chosen, (python_a, python_b), runs, limits, name)
    return _finish(folder, output, is_new=True)


def _named(sides: tuple[str, ...], pattern: str, runs: Path) -> Targets:
    """Return the runs that are named, each with its case: its own, or the one that both have."""
    from trainmark.pages.history import matches
    from trainmark.store.run import find_case

    (first, first_case), (second, second_case) = (find_case(word, runs) for word in sides)
    if first_case and second_case:
        return (first, first_case), (second, second_case)
    common = [case for case in first.case_names() if case in second.case_names()]
    wanted = first_case or second_case
    cases = [case for case in common if case == wanted or (not wanted and matches(pattern, case))]
    if not common:
        raise UserError("the two runs have no case in common; write RUN/CASE for each of them.")
    if len(cases) != 1:
        listed = f"the cases that both runs have are {', '.join(common)}"
        raise UserError(f"{listed}; choose one with --case, or write RUN/CASE.")
    return (first, cases[0]), (second, cases[0])


def _suspected(pattern: str, runs: Path) -> Targets | None:
    """Return the neighbours of the latest change of level that the history shows."""
    from trainmark.measure.history.changes import changes
    from trainmark.measure.history.series import case_of
    from trainmark.pages.history import histories
    from trainmark.store.observations import series_of_runs
    from trainmark.store.run import all_runs

    folders = [run for run in all_runs(runs) if not run.info.of_explain]
    if not folders:
        raise UserError(f"there are no runs in {runs}; make one with `trainmark run quick`.")
    shown = histories(series_of_runs(folders), changes, pattern=pattern)
    if not shown.cases:
        raise UserError(f"no case of these runs matches '{pattern}'.")
    if not shown.changes:
        return None
    history, marked = shown.changes[0]
    by_name = {run.path.name: run for run in folders}
    before, after = (by_name[history.points[index].run] for index in (marked.index - 1, marked.index))

    def case_in(run: RunFolder) -> str:
        keys = {record.spec.case: case_of(record.key) for record in run.records() if record.figure}
        return next(case for case, key in keys.items() if key == history.series.key)

    return (before, case_in(before)), (after, case_in(after))


def _begin(
    chosen: Targets, pythons: tuple[str | None, str | None], runs: Path, limits: WatchLimits, name: str | None
) -> WatchFolder:
    from trainmark.runner.watch import begin

    targets = [(run, case, python) for (run, case), python in zip(chosen, pythons, strict=True)]
    return begin(targets, runs, limits, _differences(chosen), name)


def _differences(chosen: Targets) -> list[FactDifference]:
    """Return the recorded facts in which the two runs differ."""
    from trainmark.measure.ab import FactDifference
    from trainmark.measure.history.facts import settings_that_differ
    from trainmark.measure.history.series import case_of
    from trainmark.store.observations import series_of_runs

    points = []
    for run, case in chosen:
        keys = {case_of(record.key) for record in run.records() if record.spec.case == case and record.figure}
        lines = [line for line in series_of_runs([run]) if line.key in keys]
        points += [line.points[-1] for line in lines[:1]]
    if len(points) < 2:
        return []
    return [FactDifference(fact.name, fact.before, fact.after) for fact in settings_that_differ(*points)]


def _finish(folder: WatchFolder, output: Output, is_new: bool) -> int:
    from trainmark.cli.progress import TrialProgress
    from trainmark.measure.ab import ABVerdict
    from trainmark.runner.watch import carry_out

    with TrialProgress() as display:
        confirmation, interrupted = carry_out(folder, display, is_new=is_new)
    if interrupted:
        click.echo(f"stopped; go on with `trainmark watch --resume --name {folder.path.name}`", err=True)
        return INTERRUPTED
    _write(confirmation, output)
    if confirmation.verdict is ABVerdict.SLOWER and not output.as_json:
        tell_next("watch")
    codes = {ABVerdict.SLOWER: REGRESSION, ABVerdict.UNDECIDED: UNDECIDED}
    return codes.get(confirmation.verdict, NOTHING)


def _write(confirmation: Confirmation | None, output: Output) -> None:
    from trainmark.base.files import write_text
    from trainmark.pages import watch
    from trainmark.view import terminal

    lang = output.lang
    if output.junit is not None:
        write_text(output.junit, watch.junit(confirmation, lang))
    if output.hook_file is not None:
        write_text(output.hook_file, watch.hook(confirmation, lang))
    if output.as_json:
        click.echo(watch.hook(confirmation, lang), nl=False)
    else:
        click.echo(terminal.render(watch.watch_page(confirmation), lang), nl=False)
