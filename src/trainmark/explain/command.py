"""`trainmark explain`: where the time of a step goes."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from trainmark.base.errors import UserError
from trainmark.cli.crash import tell_next
from trainmark.cli.options import cluster_options, json_option, lang_option, runs_option
from trainmark.cli.own_program import (
    RunCommand,
    program_options,
    program_words,
    refuse_program_options,
    taken_program_options,
)
from trainmark.cli.terminal import deliver, rendered, terminal_width

if TYPE_CHECKING:
    from trainmark.explain.explained_trial import Explained
    from trainmark.explain.run import ExplainedDifference
    from trainmark.launch.options import LaunchOptions
    from trainmark.view.blocks import Page
    from trainmark.view.catalogue import Lang


FORMATS = ("text", "md", "html", "json")


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
@program_options
@click.option("--name", help="Of a program: name the run.")
@runs_option
@cluster_options
@click.option("--memory", "only_memory", is_flag=True, help="Show what holds the peak memory, and only that.")
@click.option("--format", "kind", type=click.Choice(FORMATS), help="Print one format.")
@lang_option
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
    lang: Lang,
    out: Path | None,
    as_json: bool,
    **options: Any,
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
    from trainmark.cli.progress import TrialProgress
    from trainmark.explain.page import memory_page
    from trainmark.explain.run import ExplainedDifference, explain, explain_program

    words = program_words(click.get_current_context().meta["program"], "", None)
    about = taken_program_options(options)
    kind = "json" if as_json else kind
    shared: dict[str, Any] = {"runs": runs, "profile_steps": profile_steps, "choice": choice}
    explained: Explained | ExplainedDifference
    if words:
        if targets:
            raise click.UsageError("name a run or a program behind `--`, not both.")
        explained = explain_program(words, about, name=name, display=TrialProgress, **shared)
    else:
        refuse_program_options(about, "write one behind `--`")
        if script := next((each for each in targets if each.endswith(".py")), None):
            raise click.UsageError(f"a program stands behind `--`: trainmark explain -- python {script}.")
        explained = explain(*targets, again=again, can_change=verify, display=TrialProgress, **shared)
    if isinstance(explained, ExplainedDifference):
        return _show(explained, explained.page(), "difference", kind, lang, out)
    if verify:
        explained = _verified(explained, repeats, changes, runs)
    if only_memory and explained.explanation.memory is None:
        notes = "; ".join(explained.explanation.notes or ("no note",))
        raise UserError(f"nothing is known of the memory: {notes}")
    shown = memory_page(explained.explanation) if only_memory else explained.page()
    code = _show(explained, shown, "explanation", kind, lang, out)
    if words and kind is None:
        tell_next("explain")
    elif kind is None and not verify and (run := explained.run) is not None:
        # Of a user's own program no change can be made from here.
        own = run.info.folder is not None
        tell_next("explain" if own else "explain a run", run=run.path)
    return code


def _verified(explained: Explained, repeats: int, changes: Sequence[str], runs: Path) -> Explained:
    """Make the changes that can be made, each beside the case as it is; their errors join the record."""
    from trainmark.cli.progress import TrialProgress
    from trainmark.explain.verify import verify_changes

    if explained.case is None or explained.situation is None:
        raise UserError("only a case of a run can be changed, and a trace is none.")
    with TrialProgress() as display:
        return verify_changes(explained, runs, display, repeats, changes)


def _show(
    explained: Explained | ExplainedDifference,
    shown: Page,
    name: str,
    kind: str | None,
    lang: Lang,
    out: Path | None,
) -> int:
    """Print or write one format; without a format print the text and write the page as HTML and Markdown."""
    if kind == "json":
        deliver(
            json.dumps(explained.to_dict(), indent=1, allow_nan=False, ensure_ascii=False) + "\n", kind, out
        )
        return 0
    if kind is not None:
        deliver(rendered(shown, kind, lang, None if out else terminal_width()), kind, out)
        return 0
    click.echo(rendered(shown, "text", lang, terminal_width()), nl=False)
    folder = getattr(explained, "folder", None)
    if (place := out or folder) is not None:
        _write(explained.page(), place, name, lang, folder)
    return 0


def _write(page: Page, place: Path, name: str, lang: Lang, folder: Path | None) -> None:
    """Write the files, and name them with the trace that lies beside the explanation."""
    from trainmark.base.files import write_text

    place.mkdir(parents=True, exist_ok=True)
    suffix = "" if lang == "en" else f".{lang}"
    paths = {written: place / f"{name}{suffix}.{written}" for written in ("html", "md")}
    for written, path in paths.items():
        write_text(path, rendered(page, written, lang))
    if folder is not None and (folder / "trace.json.gz").is_file():
        paths["trace"] = folder / "trace.json.gz"
    click.echo("\n" + "\n".join(f"{written:<9} {path}" for written, path in paths.items()))
