"""`trainmark bisect`: which version, commit or setting made training slower, or faster."""

from __future__ import annotations

import json
import shlex
import shutil
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from trainmark.base.errors import UserError
from trainmark.cli.complete import complete_suite
from trainmark.cli.options import OneMachineCommand, is_given, json_option, lang_option, share
from trainmark.cli.own_program import (
    RunCommand,
    program_options,
    program_words,
    refuse_program_options,
    taken_program_options,
)
from trainmark.cli.terminal import terminal_width
from trainmark.suite.program import name_of, program_suite

if TYPE_CHECKING:
    from trainmark.measure.bisection import Bisection
    from trainmark.runner.bisect.state import BisectRequest
    from trainmark.suite.model import Suite
    from trainmark.view.catalogue import Lang

FOUND, NOT_FOUND, INTERRUPTED = 0, 1, 130
OF_SETTINGS = ("good_set", "bad_set", "good_env", "bad_env", "good_env_file", "bad_env_file")
OF_VERSIONS = ("beside", "python", "pre")
OF_COMMITS = ("repository", "setup")
WITH_RESUME = ("resume", "lang", "as_json")
FILE = click.Path(exists=True, dir_okay=False, path_type=Path)


class BisectCommand(OneMachineCommand, RunCommand):
    """Takes a program behind `--`, and refuses other machines."""


@click.command(
    "bisect",
    cls=BisectCommand,
)
@click.argument(
    "suite", default="", metavar="[SUITE | SCRIPT.py | -- PROGRAM ...]", shell_complete=complete_suite
)
@click.option("--good", metavar="PKG==VERSION|REV", help="A version or commit from before the change.")
@click.option("--bad", metavar="PKG==VERSION|REV", help="A version or commit from after it.")
@click.option(
    "--with", "beside", multiple=True, metavar="REQUIREMENT",
    help="Of versions: another package to install in each environment, as in 'numpy<2'.",
)  # fmt: skip
@click.option("--python", help="Of versions: the interpreter that makes the environments.")
@click.option("--pre", is_flag=True, help="Of versions: take pre-releases too.")
@click.option(
    "--repository", type=click.Path(path_type=Path), help="Of commits: the repository. [default: this folder]"
)
@click.option("--setup", metavar="COMMAND", help="Of commits: run this in each checkout first.")
@click.option("--good-set", multiple=True, metavar="KEY=VALUE", help="A setting of the good side.")
@click.option("--bad-set", multiple=True, metavar="KEY=VALUE", help="A setting of the bad side.")
@click.option("--good-env", multiple=True, metavar="NAME=VALUE", help="A variable of the good side.")
@click.option("--bad-env", multiple=True, metavar="NAME=VALUE", help="A variable of the bad side.")
@click.option("--good-env-file", type=FILE, help="Variables of the good side, as `env` prints them.")
@click.option("--bad-env-file", type=FILE, help="Variables of the bad side.")
@click.option(
    "--case",
    "case_name",
    help="The case, by its name or a part of it.",
)
@click.option("--set", "overrides", multiple=True, metavar="KEY=VALUE", help="Override a field on all sides.")
@program_options
@click.option(
    "--matters", default="1%", callback=share, show_default=True, help="The smallest change worth a search."
)
@click.option(
    "--error", default="5%", callback=share, show_default=True,
    help="How often a bisection may take a wrong half.",
)  # fmt: skip
@click.option(
    "--most-pairs", type=click.IntRange(8, 10_000), default=60, show_default=True,
    help="Give a step up after so many pairs.",
)  # fmt: skip
@click.option(
    "--folder", type=click.Path(path_type=Path),
    help="Keep the bisection here. [default: bisections/SUBJECT-TIME]",
)  # fmt: skip
@click.option("--resume", type=click.Path(path_type=Path), help="Go on with the bisection in this folder.")
@lang_option
@json_option
def bisect_command(
    suite: str,
    good: str | None,
    bad: str | None,
    case_name: str | None,
    overrides: tuple[str, ...],
    matters: float,
    error: float,
    most_pairs: int,
    folder: Path | None,
    resume: Path | None,
    lang: Lang,
    as_json: bool,
    **options: Any,
) -> int:
    """Find which version, commit or setting made a SUITE or PROGRAM slower, or faster.

    Each step runs one candidate in turns with the good side until a sequential test is certain of its side;
    the wrong half is taken in at most --error of all bisections. What does not install, build or run is
    skipped. The culprit is measured once more beside its predecessor. Exit code 0: found; 1: not.

    \b
    Examples:
      trainmark bisect --good torch==2.9.1 --bad torch==2.13.0 quick --case 1n1g
      trainmark bisect --good jax==0.4.30 --bad jax==0.4.38 -- python train.py
      trainmark bisect --good v1.2 --bad main --repository ~/trainer -- python train.py
      trainmark bisect --bad-env OMP_NUM_THREADS=1 --bad-set layout=NHWC quick --case 1n1g
      trainmark bisect --good-env-file monday.env --bad-env-file tuesday.env -- python train.py
      trainmark bisect --resume bisections/torch-20260102-030405
      trainmark bisect --resume bisections/torch-20260102-030405 --lang zh
    """
    from trainmark import __version__
    from trainmark.runner.bisect.driver import choose_case
    from trainmark.runner.bisect.state import BisectionFolder, BisectRequest

    if resume is not None:
        _refuse_others_than_resume()
        return _carry_on(resume, lang, as_json)
    mode = _mode(good, bad, options)
    loaded = _suite(suite, overrides, options)
    place = choose_case(loaded, case_name)
    asked = BisectRequest(
        kind=mode,
        good=good or "good",
        bad=bad or "bad",
        text=loaded.text,
        case=place,
        folder=loaded.folder,
        matters=matters,
        error=error,
        most=most_pairs,
        command=shlex.join(["trainmark", *sys.argv[1:]]),
        version=__version__,
    )
    asked, subject, count = _looked_up(asked, options)
    path = folder or Path("bisections") / f"{subject}-{time.strftime('%Y%m%d-%H%M%S')}"
    created = BisectionFolder.create(path, asked)
    click.echo(f"bisecting {count} in {path}", err=True)
    with created.removed_if_unused():
        return _carry_on(path, lang, as_json)


def _refuse_others_than_resume() -> None:
    """A resumed bisection goes on as it was asked: UsageError where the command line asks something else."""
    context = click.get_current_context()
    given = [name for name in context.params if is_given(name) and name not in WITH_RESUME]
    if given or context.meta["program"]:
        raise click.UsageError(
            "a resumed bisection keeps what it was asked; give --resume alone, or with --lang and --json."
        )


def _mode(good: str | None, bad: str | None, options: dict[str, Any]) -> str:
    """Return versions, commits or settings; UsageError where the options are of several, or of none."""
    from trainmark.runner.bisect.packages import parse_requirement

    settings = [name for name in OF_SETTINGS if options[name]]
    if good is None and bad is None:
        if not settings:
            raise click.UsageError(
                "say what to bisect: --good and --bad (versions or commits), or --bad-set and --bad-env."
            )
        mode = "settings"
    elif good is None or bad is None:
        raise click.UsageError(f"--{'good' if good is None else 'bad'} is missing; a bisection has two ends.")
    else:
        requirements = [parse_requirement(text) is not None for text in (good, bad)]
        if any(requirements) and not all(requirements):
            raise click.UsageError("--good and --bad are a version and a commit; give two of one kind.")
        mode = "versions" if all(requirements) else "commits"
    others = {"versions": OF_VERSIONS, "commits": OF_COMMITS, "settings": OF_SETTINGS}
    for kind, names in others.items():
        if kind != mode and (only := [name for name in names if options[name]]):
            option = {"beside": "with"}.get(only[0], only[0]).replace("_", "-")
            raise click.UsageError(f"--{option} is of a bisection of {kind}, and this is one of {mode}.")
    return mode


def _suite(suite: str, overrides: tuple[str, ...], options: dict[str, Any]) -> Suite:
    from trainmark.suite import load

    about_program = taken_program_options(options)
    words = program_words(click.get_current_context().meta["program"], suite, None)
    if words:
        text = program_suite(words, about_program)
        return load.parse(text, name_of(words), overrides, folder=str(Path.cwd()))
    refuse_program_options(about_program, "a suite says it itself (--set)")
    if not suite:
        raise click.UsageError("name a suite, or a program behind `--`.")
    return load.load(suite, overrides)


def _looked_up(asked: BisectRequest, options: dict[str, Any]) -> tuple[BisectRequest, str, str]:
    """Return the question with its versions, commits or differences, its subject and how many there are."""
    from dataclasses import replace

    from trainmark.pages.number import counted
    from trainmark.runner.bisect.commits import commits_between, uncommitted
    from trainmark.runner.bisect.driver import case_of, check_settings
    from trainmark.runner.bisect.packages import parse_requirement, versions_between
    from trainmark.runner.bisect.settings import common_pairs, env_lines, setting_differences
    from trainmark.suite.model import Command

    if asked.kind == "versions":
        good, bad = parse_requirement(asked.good), parse_requirement(asked.bad)
        assert good is not None and bad is not None
        python = options["python"] or sys.executable
        if shutil.which(python) is None:
            raise UserError(f"{python} is no interpreter on this machine.")
        versions = versions_between(good, bad, python, pre=options["pre"])
        asked = replace(asked, names=tuple(versions), python=python, beside=tuple(options["beside"]))
        return asked, good.package, f"{len(versions)} versions of {good.package}"
    if asked.kind == "commits":
        if not isinstance(case_of(asked).workload, Command):
            raise UserError("commits are bisected by a program of the repository; give one behind `--`.")
        repository = options["repository"] or Path.cwd()
        history = commits_between(repository, asked.good, asked.bad)
        if changed := uncommitted(repository):
            click.echo(f"not measured are the uncommitted changes of {counted(changed, 'file')}", err=True)
        asked = replace(
            asked,
            names=history.commits,
            repository=history.repository,
            prefix=history.prefix,
            setup=options["setup"],
        )
        return asked, Path(history.repository).name, counted(len(history.commits) - 1, "commit")
    for side in ("good", "bad"):
        if file := options[f"{side}_env_file"]:
            text = file.read_text(encoding="utf-8", errors="replace")
            options[f"{side}_env"] = (*env_lines(text, str(file)), *options[f"{side}_env"])
    every = setting_differences(
        options["good_set"], options["bad_set"], options["good_env"], options["bad_env"]
    )
    if not every:
        raise UserError("the two sides do not differ; give at least one --bad-set or --bad-env.")
    common = common_pairs(options["good_env"], options["bad_env"], "env")
    asked = replace(asked, differences=every, common=tuple(common.items()))
    check_settings(asked)
    return asked, "settings", counted(len(every), "difference")


def _carry_on(path: Path, lang: Lang, as_json: bool) -> int:
    from trainmark.cli.progress import TrialProgress
    from trainmark.runner.bisect.driver import bisect_on
    from trainmark.runner.bisect.subject import BisectionStoppedError
    from trainmark.runner.run import RunStoppedError

    try:
        with TrialProgress() as display:
            bisection = bisect_on(path, display)
    except (BisectionStoppedError, KeyboardInterrupt):
        click.echo(f"stopped; go on with `trainmark bisect --resume {path}`", err=True)
        return INTERRUPTED
    except RunStoppedError as error:
        click.echo(f"trainmark: {error}", err=True)
        return NOT_FOUND
    return _show(bisection, path, lang, as_json)


def _show(bisection: Bisection, path: Path, lang: Lang, as_json: bool) -> int:
    from trainmark.base.files import write_text
    from trainmark.base.typed_json import encode
    from trainmark.measure.bisection import BisectionFinding
    from trainmark.pages.bisect import bisect_page
    from trainmark.view import html, markdown, terminal

    plain = encode(bisection) | {"trials": bisection.trials, "seconds": bisection.seconds}
    as_text = json.dumps(plain, indent=1, ensure_ascii=False)
    suffix = "" if lang == "en" else f".{lang}"
    report, page = f"report{suffix}.html", bisect_page(bisection)
    written = {
        report: html.render(page, lang),
        f"report{suffix}.md": markdown.render(page, lang),
        "report.json": as_text + "\n",
    }
    for name, content in written.items():
        write_text(path / name, content)
    if as_json:
        click.echo(as_text)
    else:
        shown = terminal.render(page, lang, terminal_width())
        click.echo(f"\n{shown}\nreport {path / report}")
    return FOUND if bisection.finding in (BisectionFinding.FOUND, BisectionFinding.NARROWED) else NOT_FOUND
