"""`trainmark run`: a suite or a program of one's own, its plan and its trials."""

from __future__ import annotations

import contextlib
import json
import shlex
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from trainmark.cli.complete import complete_framework, complete_precision, complete_suite
from trainmark.cli.crash import tell_next
from trainmark.cli.options import cluster_options, duration, json_option, runs_option, tell_damage
from trainmark.cli.own_program import (
    RunCommand,
    program_options,
    program_words,
    refuse_program_options,
    taken_program_options,
)
from trainmark.cli.terminal import terminal_width
from trainmark.suite.program import (
    FEWEST_REPEATS,
    name_of,
    program_suite,
    require_script,
    variants,
    variants_suite,
)

if TYPE_CHECKING:
    from trainmark.launch.options import LaunchOptions
    from trainmark.runner.prepare import Prepared
    from trainmark.store.run import RunFolder


DONE, FAILED, INTERRUPTED = 0, 1, 130
SHORTHANDS = {
    "framework": "framework",
    "precision": "precision",
    "batch": "batch_per_device",
    "topology": "topology",
    "repeats": "repeats",
    "device": "device",
    "recipe": "recipe",
    "epochs": "epochs",
}


@click.command("run", cls=RunCommand)
@click.argument(
    "suite", default="", metavar="[SUITE | SCRIPT.py | -- PROGRAM ...]", shell_complete=complete_suite
)
@click.option("-m", "module", metavar="MODULE", help="Measure `python -m MODULE`.")
@program_options
@click.option(
    "--against",
    multiple=True,
    metavar="COMMAND",
    help="Of a program: run this one too, in turns, and compare it with the program.",
)
@click.option(
    "--vary",
    multiple=True,
    metavar="NAME=A,B",
    help="Of a program: run it with each --NAME VALUE, or VALUE in place of {NAME}; compare with the first.",
)
@click.option(
    "--fail-below",
    type=click.FloatRange(min=0, min_open=True),
    help="Exit 1 where a ratio to the baseline is less, and surely below 1: doubts are named, but decide"
    " nothing where trials take turns.",
)
@click.option("--name", help="Name the run; by default the suite's name and the time.")
@runs_option
@click.option(
    "--set", "overrides", multiple=True, metavar="KEY=VALUE", help="Override any field of the suite."
)
@click.option("--framework", shell_complete=complete_framework, help="Short for --set framework=…")
@click.option(
    "--precision", shell_complete=complete_precision,
    help="Short for --set precision=…; fp32, tf32, amp, bf16, or several with commas.",
)  # fmt: skip
@click.option("--batch", help="Short for --set batch_per_device=…")
@click.option("--topology", help="Short for --set topology=…; 1n2g is 1 node with 2 devices.")
@click.option("--repeats", help="Short for --set repeats=…")
@click.option("--device", help="Short for --set device=…; auto, cuda or cpu.")
@click.option("--dataset", type=click.Path(path_type=Path), help="Train on the data in this folder.")
@click.option("--recipe", help="Short for --set recipe=…; `trainmark suites recipes` lists them.")
@click.option("--epochs", help="Train at most N epochs, evaluating after each.")
@click.option(
    "--until", "finish_lines", multiple=True, metavar="METRIC=VALUE", help="Train until it is reached."
)
@click.option("--dry-run", is_flag=True, help="Show the trials, their commands and the time; run nothing.")
@click.option("--resume", is_flag=True, help="Go on with a run (by name, path or latest) where it stopped.")
@click.option("--retry-failed", is_flag=True, help="With --resume: run failed trials again too.")
@click.option(
    "--wait-quiet",
    callback=duration,
    metavar="TIME",
    help="Wait until nothing else keeps the machine busy before each trial; at most this long in all: 30m.",
)
@click.option("--port", type=click.IntRange(1, 65535), help="The first port to try for the ranks to meet on.")
@cluster_options
@click.option(
    "--exclude-bad-nodes", is_flag=True, help="Leave out a node that fails twice, and go on without."
)
@json_option
def run_command(
    suite: str,
    name: str | None,
    runs: Path,
    overrides: tuple[str, ...],
    dataset: Path | None,
    finish_lines: tuple[str, ...],
    dry_run: bool,
    resume: bool,
    retry_failed: bool,
    port: int | None,
    choice: LaunchOptions,
    exclude_bad_nodes: bool,
    as_json: bool,
    module: str | None,
    against: tuple[str, ...],
    vary: tuple[str, ...],
    fail_below: float | None,
    wait_quiet: float | None,
    **shorthands: str | None,
) -> int:
    """Run your own program, or a SUITE (built in, or a YAML file), and report a figure that can be believed.

    Without either it is the suite `quick`. Each repeat is a fresh process, and the cases take turns. Ctrl-C
    once finishes the running trial and stops, twice stops now; --resume goes on later.

    A program needs no change: its steps are watched from inside PyTorch, Keras or JAX, or read from what it
    prints. It is ended once enough steps are measured (--steps all: it runs to its end).

    With --against or --vary several commands take turns, and the run stops as soon as each ratio to the first
    is certain, after --repeats rounds at most. [default: 20]

    \b
    Examples:
      trainmark run -- python train.py --lr 0.1      your own trainer
      trainmark run -- torchrun --nproc-per-node 2 train.py
      trainmark run --unit tokens --samples-per-step 16384 -- python train.py
      trainmark run --against "python train.py --compile" -- python train.py
      trainmark run --vary workers=0,4,8 -- python train.py
      trainmark run --wait-quiet 30m -- python train.py
      trainmark run                                  the suite `quick`
      trainmark run resnet50-dlperf --dry-run        what would run here, and what not
      trainmark run resnet50-scaling --precision amp,bf16 --set measure.steps=200
      trainmark run my-suite.yaml --name before-upgrade
      trainmark run --resume before-upgrade
      trainmark run --dataset /data/imagenet --until top1=0.761 --recipe ai-rank --repeats 3
      trainmark run resnet50-dlperf --hosts node1,node2,node3,node4
      trainmark run resnet50-dlperf --launcher slurm --launcher-option=--partition=gpu
    """
    from dataclasses import replace

    from trainmark.launch.options import stored_options
    from trainmark.launch.outcome import Outcome
    from trainmark.runner.prepare import prepare, prepare_text
    from trainmark.runner.run import forget_failures, new_run
    from trainmark.store.run import find_run
    from trainmark.suite.load import Override

    about_program = taken_program_options(shorthands)
    words = program_words(click.get_current_context().meta["program"], suite, module)
    several = bool(against or vary)
    asked = {**about_program, "against": against or None, "vary": vary or None}
    if not words:
        named = "name it behind `--`: -- python train.py"
        refuse_program_options(asked, "a suite says it itself (--set)" if suite else named)
    as_asked = dict(shorthands)
    if several and (most := shorthands["repeats"]) and most.isdecimal():
        shorthands["repeats"] = f"{{min: {min(FEWEST_REPEATS, int(most))}, max: {most}}}"
    given = [
        Override(f"{key}={value}", f"--{short} {as_asked[short]}")
        for short, key in SHORTHANDS.items()
        if (value := shorthands[short]) is not None
    ]
    given += [
        Override(f"until.{line}", f"--until {line}") for each in finish_lines for line in each.split(",")
    ]
    if dataset is not None:
        given += [Override(f"dataset={dataset.absolute()}", f"--dataset {dataset}")]
    changes = [*(Override(text, f"--set {text}") for text in overrides), *given]
    choice = replace(choice, port=port, exclude_bad_nodes=exclude_bad_nodes)
    if retry_failed and not resume:
        raise click.UsageError("--retry-failed goes with --resume.")
    if resume:
        if changes or dry_run:
            raise click.UsageError(
                "a resumed run keeps its suite; leave out --set, its short forms and --dry-run."
            )
        run = find_run(name or suite or "latest", runs)
        run.require_whole()
        if run.cluster is not None:
            choice = stored_options(run.cluster).changed_by(choice)
        prepared = prepare_text(run.suite, "suite.yaml", run.info.folder, choice=choice)
        # What went with a node says nothing of the program.
        forget_failures(run, only=None if retry_failed else Outcome.LOST)
        return _carry_out(run, prepared, port, as_json, wait_quiet, fail_below)
    if fail_below is not None and not several and words:
        raise click.UsageError(
            "--fail-below is for several commands (--against, --vary) or a suite with a baseline."
        )
    if not choice.is_local and sys.stderr.isatty():
        click.echo(f"looking at the nodes by {choice.launcher} …", err=True)
    if words:
        lines = variants(words, against, vary) if several else {}
        for line in (lines.values() or [words]) if choice.is_local else ():
            require_script(line)  # on other nodes the folder may hold something else
        text = variants_suite(lines, about_program) if several else program_suite(words, about_program)
        prepared = prepare_text(text, name_of(words), str(Path.cwd()), changes, choice)
    else:
        prepared = prepare(suite or "quick", changes, choice)

    if dry_run:
        show_plan(prepared, runs, as_json)
        prepared.close()
    if not prepared.plan.cases:
        reasons = sorted({skip.reason.rstrip(".") for skip in prepared.plan.skipped})
        why = "; ".join(reasons) or "all its cases are for another kind of machine"
        raise click.UsageError(f"nothing in this suite can run here: {why}.")
    if dry_run:
        return DONE
    command = shlex.join(["trainmark", *sys.argv[1:]])
    run = new_run(prepared, runs, name, command)
    if estimate := estimated(prepared, runs):
        click.echo(estimate, err=True)
    return _carry_out(run, prepared, port, as_json, wait_quiet, fail_below)


def _carry_out(
    run: RunFolder,
    prepared: Prepared,
    port: int | None,
    as_json: bool,
    wait_quiet: float | None,
    fail_below: float | None,
) -> int:
    from trainmark.api.runs import carry_out
    from trainmark.cli.progress import TrialProgress
    from trainmark.cli.report import render, write_reports
    from trainmark.pages.run.results import contrast_doubts
    from trainmark.runner.run import RunStoppedError
    from trainmark.store.report import report_of

    display = TrialProgress()
    for skip in prepared.plan.skipped:
        display.note(f"skipped {skip.case.slug}: {skip.reason}")
    with display, contextlib.closing(prepared):
        try:
            finish = carry_out(run, prepared, display, port, wait_quiet or 0.0)
        except RunStoppedError as error:
            click.echo(f"trainmark: {error}", err=True)
            return FAILED
    report = report_of(run)
    tell_damage(run)
    try:
        written = write_reports(report, run.path)
    except OSError as error:
        click.echo(
            f"trainmark: the report cannot be written: {error}; `trainmark report {run.path}`.", err=True
        )
        return FAILED
    if as_json:
        click.echo(render(report, "json"))
    else:
        click.echo("\n" + render(report, "text", width=terminal_width()))
        click.echo("\n".join(f"{kind:<9} {path}" for kind, path in written.items()))
    if finish.interrupted:
        click.echo(f"stopped; go on with `trainmark run --resume {run.path}`", err=True)
        return INTERRUPTED
    slower = [line for line in report.contrasts if fail_below and line.fails_below(fail_below)]
    for line in slower:
        ratio = line.judgement.ratio if line.judgement else 0.0
        failure = f"trainmark: {line.case} is at ×{ratio:.3f} of {line.baseline}, below {fail_below:g}."
        click.echo(f"{failure} {contrast_doubts(report, line)}".strip(), err=True)
    if not as_json and report.results:
        tell_next("run of several" if report.contrasts else "run", run=run.path)
    return FAILED if finish.tally.failed or slower else DONE


WORTH_SAYING_SECONDS = 60.0


def show_plan(prepared: Prepared, runs: Path, as_json: bool) -> None:
    from trainmark.pages.number import counted

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
    from trainmark.pages.number import counted
    from trainmark.runner.prepare import earlier_trial_seconds, plan_seconds

    known = earlier_trial_seconds(runs)
    seconds = plan_seconds(prepared.plan, known)
    if seconds is None or seconds < WORTH_SAYING_SECONDS:
        return ""
    return f"{counted(len(prepared.plan.certain()), 'trial')}; {_time(seconds, _origin(prepared, known))}"


def _origin(prepared: Prepared, known: Mapping[str, float]) -> str:
    return "earlier trials" if all(case.slug in known for case in prepared.plan.cases) else "a rough guess"


def _plan(prepared: Prepared, runs: Path) -> dict[str, Any]:
    from trainmark.launch.launcher import LocalLauncher
    from trainmark.runner.command import job_of
    from trainmark.runner.prepare import earlier_trial_seconds, plan_seconds

    plan = prepared.plan
    known = earlier_trial_seconds(runs)

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
