"""`trainmark explain`: where the time of a step goes."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from trainmark.base.errors import UserError
from trainmark.cli.crash import tell_next
from trainmark.cli.options import cluster_options, json_option, runs_option
from trainmark.cli.own_program import RunCommand, program_words, step_count
from trainmark.cli.terminal import deliver, rendered, terminal_width
from trainmark.store.files import StoreError
from trainmark.store.run import RunFolder, find_case, find_run
from trainmark.suite.program import name_of, program_suite, require_script

if TYPE_CHECKING:
    from trainmark.explain.explained_trial import Explained
    from trainmark.launch.options import LaunchOptions
    from trainmark.view.blocks import Page
    from trainmark.view.catalogue import Lang


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


FORMATS = ("text", "md", "html", "json")
OF_PROGRAMS = ("steps", "warmup", "samples_per_step", "unit", "pattern")


def what_if_names(_: click.Context, __: click.Parameter, names: tuple[str, ...]) -> tuple[str, ...]:
    """Refuse what no suite can make before anything is profiled; `batch x2` is `batch ×2`."""
    if not names:
        return ()
    from trainmark.explain.what_if.changes import CHANGES

    known = [change.name for change in CHANGES if change.can_be_made]
    written = tuple(name.replace("x2", "×2") for name in names)
    if unknown := [name for name in written if name not in known]:
        raise click.BadParameter(f"{unknown[0]!r} cannot be made by a suite: name one of {', '.join(known)}.")
    return written


@click.command("explain", cls=RunCommand)
@click.argument("targets", nargs=-1, metavar="[RUN [CASE] | A B | TRACE | -- PROGRAM ...]")
@click.option("--verify", is_flag=True, help="Make the changes that can be made, and measure them.")
@click.option(
    "--repeats", type=click.IntRange(2), default=6, show_default=True, help="Of --verify: trials a case."
)
@click.option(
    "--what-if", "changes", multiple=True, callback=what_if_names, metavar="NAME",
    help="Of --verify: make only this change.",
)  # fmt: skip
@click.option("--again", is_flag=True, help="Profile a new trial, though the case was explained before.")
@click.option(
    "--profile-steps", type=click.IntRange(1, 100), default=5, show_default=True,
    help="Steps under the profiler, after the measured ones.",
)  # fmt: skip
@click.option(
    "--steps", callback=step_count, metavar="N|auto", help="Of a program: steps measured before the profile."
)
@click.option("--warmup", type=click.IntRange(0), help="Of a program: steps to leave out. [default: 10]")
@click.option("--samples-per-step", type=float, help="Of a program: samples of all ranks in a step.")
@click.option("--unit", help="Of a program: what its samples are, such as tokens.")
@click.option("--pattern", metavar="REGEX", help="Of a program: the line that it prints for a step.")
@click.option("--name", help="Of a program: name the run.")
@runs_option
@cluster_options
@click.option("--memory", "only_memory", is_flag=True, help="Show what holds the peak memory, and only that.")
@click.option("--format", "kind", type=click.Choice(FORMATS), help="Print one format.")
@click.option("--lang", type=click.Choice(["en", "zh"]), default="en", help="The language of text, md, html.")
@click.option("--out", type=click.Path(path_type=Path), help="Write to this file (with --format) or folder.")
@json_option
def explain_command(
    targets: tuple[str, ...],
    verify: bool,
    repeats: int,
    changes: tuple[str, ...],
    again: bool,
    profile_steps: int,
    name: str | None,
    runs: Path,
    choice: LaunchOptions,
    only_memory: bool,
    kind: str | None,
    lang: str,
    out: Path | None,
    as_json: bool,
    **about_program: Any,
) -> int:
    """Explain a CASE of a RUN, a program of yours, a trace, or the difference of two of them.

    A case is explained by a trial taken for it: its steps are measured as always, and a few more are taken
    under the profiler afterwards. Later calls show what was found then; --again profiles anew.

    \b
    Examples:
      trainmark explain latest                         the only case of the last run
      trainmark explain latest pytorch-amp-b256-1n1g   one of its cases
      trainmark explain -- python train.py             your own program
      trainmark explain before/eager after/compiled    what makes the difference
      trainmark explain trace.json.gz                  a trace that PyTorch's profiler wrote
      trainmark explain latest --verify                make the changes, and measure them
      trainmark explain latest --verify --what-if compile --repeats 2
      trainmark explain latest --format html --out step.html
    """

    if changes and not verify:
        raise click.UsageError("--what-if says what --verify is to make: give both.")
    words = program_words(click.get_current_context().meta["program"], "", None)
    kind = "json" if as_json else kind
    language: Lang = "zh" if lang == "zh" else "en"
    if words:
        if targets:
            raise click.UsageError("name a run or a program behind `--`, not both.")
        explained = [_of_program(words, about_program, name, runs, choice, profile_steps)]
    else:
        if only := [key for key in OF_PROGRAMS if about_program[key] is not None]:
            raise click.UsageError(f"--{only[0].replace('_', '-')} is for a program behind `--`.")
        if script := next((each for each in targets if each.endswith(".py")), None):
            raise click.UsageError(f"a program stands behind `--`: trainmark explain -- python {script}.")
        parsed = parse_targets(targets, runs)
        explained = [_of_target(target, again, verify, choice, profile_steps) for target in parsed]
    if len(explained) == 2:
        return _show_difference(explained, kind, language, out)
    (one,) = explained
    if verify:
        one = _verified(one, repeats, changes, runs)
    code = _show(one, kind, language, out, only_memory)
    if words and kind is None:
        tell_next("explain")
    elif kind is None and not verify and isinstance(target := parsed[0], CaseTarget):
        # Of a user's own program no change can be made from here.
        own = target.run.info.folder is not None
        tell_next("explain" if own else "explain a run", run=target.run.path)
    return code


def _of_program(
    words: Sequence[str],
    about: dict[str, Any],
    name: str | None,
    runs: Path,
    choice: LaunchOptions,
    steps: int,
) -> Explained:
    from trainmark.cli.progress import TrialProgress
    from trainmark.explain.explained_trial import explain_trial
    from trainmark.explain.profiled_trial import ensure_profile, profile_run, with_one_trial
    from trainmark.runner.prepare import prepare_text
    from trainmark.runner.run import new_run

    text = program_suite(words, about)
    if choice.is_local:
        require_script(words)
    prepared = with_one_trial(prepare_text(text, name_of(words), str(Path.cwd()), (), choice))
    with closing(prepared), TrialProgress() as display:
        run = new_run(prepared, runs, name, shlex.join(["trainmark", *sys.argv[1:]]))
        trial = profile_run(run, prepared, display, steps)
        ensure_profile(run, prepared, trial, display, steps)
    return explain_trial(run, trial)


def _of_target(target: Target, again: bool, verify: bool, choice: LaunchOptions, steps: int) -> Explained:
    from trainmark.explain.explained_trial import explain_trace

    if isinstance(target, TraceTarget):
        return explain_trace(target.path)
    return _of_case(target, again, verify, choice, steps)


def _of_case(target: CaseTarget, again: bool, verify: bool, choice: LaunchOptions, steps: int) -> Explained:
    """Read what was explained before, or take a trial of the case; what is to be changed must run here."""
    from trainmark.cli.progress import TrialProgress
    from trainmark.explain.explained_trial import explain_trial, stored_explanation
    from trainmark.explain.profiled_trial import ensure_profile, profile_case, profiled_before, with_one_trial
    from trainmark.launch.options import stored_options
    from trainmark.runner.prepare import prepare_text

    run = target.run
    if not again and not verify and (known := stored_explanation(run, target.case)) is not None:
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
            with TrialProgress() as display:
                trial = profile_case(run, prepared, display, steps)
                ensure_profile(run, prepared, trial, display, steps)
    return explain_trial(run, trial)


def _verified(explained: Explained, repeats: int, changes: Sequence[str], runs: Path) -> Explained:
    """Make the changes that can be made, each beside the case as it is; their errors join the record."""
    from trainmark.cli.progress import TrialProgress
    from trainmark.explain.verify import verify_changes

    if explained.case is None or explained.situation is None:
        raise UserError("only a case of a run can be changed, and a trace is none.")
    with TrialProgress() as display:
        return verify_changes(explained, runs, display, repeats, changes)


def _show(explained: Explained, kind: str | None, lang: Lang, out: Path | None, only_memory: bool) -> int:
    from trainmark.explain import as_json
    from trainmark.explain.page import explanation_page

    explanation = explained.explanation
    if only_memory and explanation.memory is None:
        raise UserError("nothing is known of the memory: " + "; ".join(explanation.notes or ("no note",)))
    trace = "trace.json.gz" if explained.folder else ""
    page = explanation_page(explanation, trace)
    shown = explanation_page(explanation, only_memory=True) if only_memory else page
    document = as_json.as_json(explanation) if kind == "json" else ""
    return _deliver(page, shown, document, explained.folder, "explanation", kind, lang, out)


def _show_difference(explained: Sequence[Explained], kind: str | None, lang: Lang, out: Path | None) -> int:
    from trainmark.explain import as_json
    from trainmark.explain.difference import difference
    from trainmark.explain.difference_page import difference_page

    before, after = (one.explanation for one in explained)
    change = difference(before, after)
    page, document = difference_page(change), as_json.difference_json(change) if kind == "json" else ""
    return _deliver(page, page, document, None, "difference", kind, lang, out)


def _deliver(
    page: Page,
    shown: Page,
    document: str,
    folder: Path | None,
    name: str,
    kind: str | None,
    lang: Lang,
    out: Path | None,
) -> int:
    """Print or write one format; without a format print the text `shown` and write the files of the page."""
    if kind is not None:
        deliver(document or rendered(shown, kind, lang, None if out else terminal_width()), kind, out)
        return 0
    click.echo(rendered(shown, "text", lang, terminal_width()), nl=False)
    if (place := out or folder) is not None:
        from trainmark.base.files import write_text

        place.mkdir(parents=True, exist_ok=True)
        suffix = "" if lang == "en" else f".{lang}"
        paths = {written: place / f"{name}{suffix}.{written}" for written in ("html", "md")}
        for written, path in paths.items():
            write_text(path, rendered(page, written, lang))
        if folder is not None and (folder / "trace.json.gz").is_file():
            paths["trace"] = folder / "trace.json.gz"
        click.echo("\n" + "\n".join(f"{written:<9} {path}" for written, path in paths.items()))
    return 0
