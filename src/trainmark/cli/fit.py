"""`trainmark fit`: the largest batch, beside what was published."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from trainmark.base.errors import UserError, nearest
from trainmark.cli.complete import complete_framework, complete_precision
from trainmark.cli.crash import tell_next
from trainmark.cli.options import axes_of, axis_options, json_option, workload_option
from trainmark.cli.progress import Progress
from trainmark.cli.terminal import print_json, terminal_width

if TYPE_CHECKING:
    from trainmark.machine.devices import Inventory
    from trainmark.measure.fit import FitAttempt
    from trainmark.runner.fit import FitAnswer, FitCase
    from trainmark.workloads.registry import Family


FAILED, INTERRUPTED = 1, 130
BATCH_STEP = 32
MEMORY_SIZE = re.compile(r"(\d{1,12}(?:\.\d+)?) ?([GM])i?B", re.IGNORECASE)
# As on the box of a card or of a memory module: 16 GB are 16 GiB.
UNITS = {"M": 2**20, "G": 2**30}


def _refuse_program(context: click.Context, parameter: click.Parameter, words: tuple[str, ...]) -> None:
    if words:
        raise click.UsageError(
            "the batch of a program is its own option: `trainmark run --vary batch=64,128,256 -- "
            "python train.py --batch {batch}` shows what each gives and which no longer fits; fit searches "
            "for built-in workloads, and for one in a folder with --workload."
        )


@click.command("fit")
@click.argument("program", nargs=-1, expose_value=False, callback=_refuse_program, metavar="")
@workload_option
@click.option(
    "--framework",
    default="pytorch",
    show_default=True,
    shell_complete=complete_framework,
    help="One, or several as in a,b.",
)
@click.option(
    "--precision",
    default="fp32",
    show_default=True,
    shell_complete=complete_precision,
    help="One, or several as in fp32,amp.",
)
@click.option("--layout", help="A layout of the workload; the framework's faster one if not given.")
@click.option("--compile", is_flag=True, help="Train with the framework's compiler.")
@axis_options
@click.option("--device", type=click.Choice(["auto", "cpu", "cuda"]), default="auto", show_default=True)
@click.option("--search", metavar="AXIS", help="Find the largest value of this axis instead, as in length.")
@click.option("--batch", type=click.IntRange(min=1), help="Batch per device with --search; 1 if not given.")
@click.option("--step", type=int, help="Try only multiples of this; 32 for the batch.")
@click.option("--most", type=int, help="Try no larger one than this.")
@click.option("--cap", help="Stand in for a device of this memory: 16GB, or several as in 16GB,32GB.")
@click.option("--python", help="Try this interpreter's framework instead of Trainmark's environment.")
@click.option("--again", is_flag=True, help="Forget what is remembered and measure anew.")
@json_option
def fit_command(
    workload: str,
    framework: str,
    precision: str,
    layout: str | None,
    compile: bool,
    axes: tuple[str, ...],
    device: str,
    search: str | None,
    batch: int | None,
    step: int | None,
    most: int | None,
    cap: str | None,
    python: str | None,
    again: bool,
    as_json: bool,
    **named_axes: Any,
) -> int:
    """Find the largest batch per device that trains, and the memory that a sample takes.

    The batch is doubled until one does not fit, then halved in between; each try is a fresh process that
    trains a few steps. The result is remembered. With --search an axis of the workload takes the batch's
    place: the longest sequence at a given batch. Exit code 1: not even the smallest fits, or a try failed for
    another reason than memory.

    \b
    Examples:
      trainmark fit --precision fp32,amp
      trainmark fit --cap 16GB,32GB --precision fp32,amp --json
      trainmark fit --device cpu --image-size 32 --step 8 --most 32 --cap 2GB
    """
    from trainmark.machine.devices import local_devices
    from trainmark.pages.fit import fit_page, fit_record
    from trainmark.runner import fit
    from trainmark.view import terminal
    from trainmark.workloads import registry

    family = registry.find(workload)
    searched, step = searched_in(family, search, batch, step)
    check_steps(step, most)
    chosen = axes_of(family, named_axes, axes)
    if search and (named_axes.get(search) or any(axis.startswith(f"{search}=") for axis in axes)):
        raise UserError(f"--search {search} tries values of {search}; do not give one.")
    if layout is not None and layout not in family.workload.layouts:
        raise UserError(
            f"{family.workload.name} has no layout '{layout}'{nearest(layout, family.workload.layouts)}"
        )
    here = local_devices()
    on = here.kind if device == "auto" else device
    caps = caps_of(cap, on, here)
    asked: list[FitCase] = []
    for name in _names(framework, family):
        interpreter = _interpreter(name, python)
        precisions = precisions_of(precision)
        wanted = fit.FitRequest(
            *(name, interpreter, precisions, layout, compile, family, chosen, on, caps),
            search=searched,
            batch=(batch or 1) if search else None,
            first=step if search else 1,
        )
        asked += fit.fit_cases(wanted, here)
    answers, code = _searched(asked, step, most, again)
    if as_json:
        print_json({"fits": [fit_record(answer) for answer in answers]})
    elif answers:
        click.echo(terminal.render(fit_page(answers), width=terminal_width()), nl=False)
        if len(answers) == 1 and search is None and answers[0].largest is not None:
            tell_next("fit", batch=answers[0].largest)
    return code


def _searched(
    asked: Sequence[FitCase], step: int, most: int | None, again: bool
) -> tuple[list[FitAnswer], int]:
    """One after the other, until something goes wrong; the answers until then, and the exit code."""
    from trainmark.runner.fit import FitError, FitStoppedError, fit, forget_search
    from trainmark.runner.interrupts import Interrupts

    answers: list[FitAnswer] = []
    code = 0
    with FitProgress() as watcher, Interrupts(watcher.note) as interrupts:
        for setting in asked:
            if again:
                forget_search(setting)
            try:
                answers.append(fit(setting, step, most, watcher, interrupts))
            except FitError as error:
                watcher.note(f"trainmark: {error}")
                return answers, INTERRUPTED if isinstance(error, FitStoppedError) else FAILED
            if answers[-1].largest is None:
                watcher.note(f"trainmark: {setting}: not even {setting.search} {step} fits.")
                code = FAILED
    return answers, code


def searched_in(family: Family, search: str | None, batch: int | None, step: int | None) -> tuple[str, int]:
    """Return what is searched, the batch or an axis that takes memory, and by which step."""
    from trainmark.runner.fit import BATCH

    if search is None:
        if batch is not None:
            raise UserError("--batch goes with --search; the batch itself is what is searched otherwise.")
        return BATCH, BATCH_STEP if step is None else step
    steps = {axis.name: axis.fit_step for axis in family.workload.axes if axis.fit_step}
    if search not in steps:
        known = f"it takes {' or '.join(steps)}" if steps else "it has no axis that takes memory as it grows"
        raise UserError(f"--search '{search}' is nothing to search in {family.workload.name}: {known}.")
    return search, steps[search] if step is None else step


def check_steps(step: int, most: int | None) -> None:
    if step < 1:
        raise UserError(f"--step {step} leads nowhere; give 1 or more.")
    if most is not None and most < step:
        raise UserError(f"--most {most} is less than one --step of {step}; raise it or lower --step.")


def caps_of(written: str | None, device: str, here: Inventory) -> list[int | None]:
    """In bytes; None stands for the whole device."""
    if written is None and device == "cpu":
        raise UserError(
            "on the CPU the search needs a limit, or it would end in the kernel's killing of programs: "
            "add --cap 4GB, say."
        )
    if written is None:
        return [None]
    memory = here.cuda[0].memory_bytes if device == "cuda" and here.cuda else here.memory_bytes
    caps = [_bytes(word.strip()) for word in written.split(",")]
    for cap, word in zip(caps, written.split(","), strict=True):
        if memory is not None and cap >= memory:
            raise UserError(
                f"--cap {word.strip()} is no less than the {memory / 2**30:.1f} GiB that are here; give less."
            )
    return list(dict.fromkeys(caps))


def _bytes(word: str) -> int:
    match = MEMORY_SIZE.fullmatch(word)
    if match is None or not float(match[1]):
        raise UserError(f"--cap '{word}' is no amount of memory; write 16GB or 1500MB.")
    return int(float(match[1]) * UNITS[match[2].upper()])


def precisions_of(written: str) -> list[str]:
    from trainmark.suite.fields import PRECISIONS

    words = list(dict.fromkeys(word.strip() for word in written.split(",")))
    for word in words:
        if word not in PRECISIONS:
            raise UserError(f"there is no precision '{word}'{nearest(word, PRECISIONS)}")
    return words


def _names(written: str, family: Family) -> list[str]:
    names = list(dict.fromkeys(word.strip() for word in written.split(",")))
    for name in names:
        if name not in family.frameworks:
            raise UserError(f"there is no framework '{name}'{nearest(name, family.frameworks)}")
    return names


def _interpreter(framework: str, python: str | None) -> str:
    from trainmark.machine.frameworks.installed import install_hint
    from trainmark.machine.frameworks.interpreters import named
    from trainmark.runner.inventory import interpreter_of

    interpreter = named(python)[0] if python else interpreter_of(framework)
    if interpreter is None:
        raise UserError(f"{framework} is not installed; {install_hint(framework)}.")
    return interpreter


class FitProgress(Progress):
    """The batch that is tried now, and a line for each try that has ended."""

    def began(self, setting: FitCase, batch: int) -> None:
        cap = f", {setting.cap / 2**30:.2f} GiB" if setting.cap else ""
        self.show(f"{setting}{cap}: {setting.search} {batch}")

    def ended(self, tried: FitAttempt) -> None:
        peak = f", {tried.peak / 2**30:.2f} GiB at its peak" if tried.peak is not None else ""
        outcome = "fits" if tried.fits else "is refused" if tried.refused else "does not fit"
        self.note(f"{self._now} {outcome}{peak} ({tried.seconds:.0f} s)")
