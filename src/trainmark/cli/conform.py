"""`trainmark conform`: do the frameworks here train the same ResNet-50 v1.5?"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from trainmark.cli.options import json_option
from trainmark.errors import UserError, nearest

if TYPE_CHECKING:
    from trainmark.conform.verdict import Check, Verdict

DIFFERS = 1
SHOWN = 5  # differences of one check; the rest has the same cause


@click.command("conform")
@click.argument("frameworks", nargs=-1, metavar="[FRAMEWORK]...")
@click.option("--device", type=click.Choice(["cpu", "cuda"]), default="cpu", show_default=True)
@click.option("--python", help="Check this interpreter's framework instead of Trainmark's environment.")
@json_option
def conform_command(frameworks: tuple[str, ...], device: str, python: str | None, as_json: bool) -> int:
    """Prove that each FRAMEWORK trains the same model: all that are installed, or those named.

    Each trains five steps in float32 from the same weights and images, on one rank and on two. Losses,
    gradients, batch-norm statistics and weights are held against a float64 reference. The verdict is kept,
    and every report shows it. Exit code 1: something differs.

    \b
    Examples:
      trainmark conform
      trainmark conform pytorch jax --device cuda
      trainmark conform pytorch --python /opt/torch/bin/python --json
    """
    from trainmark.conform import record
    from trainmark.runner.conforming import conform
    from trainmark.runner.interrupts import Interrupts

    wanted = _wanted(frameworks, python)
    verdicts = []
    with Interrupts(lambda said: click.echo(said, err=True)) as interrupts:
        for framework, interpreter in wanted.items():
            verdict = conform(
                framework,
                interpreter,
                device,
                told=lambda text: click.echo(f"checking {text}", err=True),
                stop_asked=lambda: interrupts.stop_now() or interrupts.stop_soon,
                devices=_devices(device),
            )
            record.keep(verdict)
            verdicts.append(verdict)
            if not as_json:
                click.echo("\n".join(_lines(verdict)))
    if as_json:
        click.echo(json.dumps([verdict.to_dict() for verdict in verdicts], indent=2))
    return 0 if all(verdict.conformant for verdict in verdicts) else DIFFERS


def _wanted(frameworks: tuple[str, ...], python: str | None) -> dict[str, str]:
    """The interpreter of each; a framework that was named must be there."""
    from trainmark.environments.pythons import named
    from trainmark.runner.frameworks import interpreter_of, names

    if python and not frameworks:
        raise UserError("name the framework that --python has: `trainmark conform pytorch --python …`.")
    for name in frameworks:
        if name not in names():
            raise UserError(f"there is no framework '{name}'{nearest(name, names())}")
    if python:
        return dict.fromkeys(frameworks, named(python)[0])
    found = {name: interpreter_of(name) for name in frameworks or names()}
    for name in frameworks:
        if found[name] is None:
            raise UserError(f"{name} is not installed; `trainmark frameworks install {name}` installs it.")
    there = {name: interpreter for name, interpreter in found.items() if interpreter is not None}
    if not there:
        raise UserError("no framework is installed; `trainmark frameworks install pytorch` installs one.")
    return there


def _devices(device: str) -> int:
    """Two ranks share a CPU; on GPUs each needs its own."""
    from trainmark.system.available import local_devices

    return 2 if device == "cpu" else min(2, len(local_devices().cuda))


def _lines(verdict: Verdict) -> Iterator[str]:
    mark = "conformant" if verdict.conformant else "NOT conformant"
    yield f"{verdict.framework} {verdict.version or ''} ({verdict.device}): {mark}".replace("  ", " ")
    for check in verdict.checks:
        yield from _check_lines(check)


def _check_lines(check: Check) -> Iterator[str]:
    from trainmark.conform.verdict import words

    name = f"  {words(check):<16}"
    if check.refused is not None:
        yield f"{name} refused: {check.refused}"
    elif check.failed is not None:
        yield f"{name} failed: {check.failed}"
    elif check.passed:
        variance = f"batch norm keeps the {check.running_variance} variance"
        yield f"{name} same to {check.largest_loss_error:.0e} in the loss; {variance}"
    else:
        yield f"{name} {len(check.differs)} figures differ:"
        yield from (f"    {difference}" for difference in check.differs[:SHOWN])
        if len(check.differs) > SHOWN:
            yield f"    and {len(check.differs) - SHOWN} more (--json shows all)"
