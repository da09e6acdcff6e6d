"""`trainmark conform`: do the frameworks here train the same model?"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING

import click
from click.core import ParameterSource

from trainmark.base.errors import UserError, nearest
from trainmark.cli.complete import complete_workload_or_framework
from trainmark.cli.crash import tell_next
from trainmark.cli.options import json_option, workload_option

if TYPE_CHECKING:
    from trainmark.runner.conformance import ConformanceCheck, ConformanceVerdict
    from trainmark.workloads.registry import Family

DIFFERS = 1
SHOWN = 5  # differences of one check; the rest has the same cause


@click.command("conform")
@click.argument(
    "names", nargs=-1, metavar="[WORKLOAD] [FRAMEWORK]...", shell_complete=complete_workload_or_framework
)
@workload_option
@click.option("--device", type=click.Choice(["cpu", "cuda"]), default="cpu", show_default=True)
@click.option("--python", help="Check this interpreter's framework instead of Trainmark's environment.")
@json_option
def conform_command(
    names: tuple[str, ...], workload: str, device: str, python: str | None, as_json: bool
) -> int:
    """Prove that each FRAMEWORK trains the same model: all that are installed, or those named.

    Each trains a few steps in float32 from the same weights and data, on one rank and on two, and in every
    variant that must not change them (layouts, gradient accumulation, sharding). Losses, gradients, the
    optimizer's state and weights are compared with the workload's reference. The verdict is recorded, and
    every report shows it. Exit code 1: something differs.

    \b
    Examples:
      trainmark conform
      trainmark conform pytorch jax --device cuda
      trainmark conform gpt2
      trainmark conform bert pytorch jax
      trainmark conform pytorch --python /opt/torch/bin/python --json
      trainmark conform --workload ./my_family
    """
    from trainmark.cli.progress import Progress
    from trainmark.runner import conformance
    from trainmark.runner.conformance import conform
    from trainmark.runner.interrupts import Interrupts
    from trainmark.suite.load import built_in_names
    from trainmark.workloads import registry

    workload, frameworks = _split(names, workload)
    family = registry.find(workload)
    wanted = _wanted(frameworks, family, python)
    verdicts = []
    with Progress() as screen, Interrupts(screen.note) as interrupts:
        for framework, interpreter in wanted.items():
            verdict = conform(
                family,
                framework,
                interpreter,
                device,
                progress=lambda text: screen.note(f"checking {text}"),
                stop_asked=lambda: interrupts.stop_now() or interrupts.stop_soon,
                devices=_devices(device),
            )
            conformance.keep(verdict)
            verdicts.append(verdict)
            if not as_json:
                click.echo("\n".join(_lines(verdict)))
    if as_json:
        click.echo(json.dumps([verdict.to_dict() for verdict in verdicts], indent=2))
    if not all(verdict.conformant for verdict in verdicts):
        return DIFFERS
    if not as_json and f"{family.key}-frameworks" in built_in_names():
        tell_next("conform", family=family.key)
    return 0


def _split(names: tuple[str, ...], workload: str) -> tuple[str, tuple[str, ...]]:
    """Tell the workload, which may be the first name or the option, from the frameworks."""
    from trainmark.workloads import registry

    if not names or not (registry.is_path(names[0]) or names[0] in registry.families()):
        return workload, names
    asked = click.get_current_context().get_parameter_source("workload") is not ParameterSource.DEFAULT
    if asked and workload != names[0]:
        raise UserError(f"{names[0]} and --workload {workload} are two workloads; name one.")
    return names[0], names[1:]


def _wanted(frameworks: tuple[str, ...], family: Family, python: str | None) -> dict[str, str]:
    """The interpreter of each; a framework that was named must be installed."""
    from trainmark.machine.frameworks.installed import install_hint
    from trainmark.machine.frameworks.interpreters import named
    from trainmark.runner.inventory import interpreter_of

    if python and not frameworks:
        raise UserError("name the framework that --python has: `trainmark conform pytorch --python …`.")
    for name in frameworks:
        if name not in family.frameworks:
            raise UserError(f"there is no framework '{name}'{nearest(name, family.frameworks)}")
    if python:
        return dict.fromkeys(frameworks, named(python)[0])
    interpreters = {name: interpreter_of(name) for name in frameworks or family.frameworks}
    for name in frameworks:
        if interpreters[name] is None:
            raise UserError(f"{name} is not installed; {install_hint(name)}.")
    installed = {name: interpreter for name, interpreter in interpreters.items() if interpreter is not None}
    if not installed:
        raise UserError("no framework is installed; `trainmark frameworks install pytorch` installs one.")
    return installed


def _devices(device: str) -> int:
    """Two ranks share a CPU; on GPUs each needs its own."""
    from trainmark.machine.devices import local_devices

    return 2 if device == "cpu" else min(2, len(local_devices().cuda))


def _lines(verdict: ConformanceVerdict) -> Iterator[str]:
    from trainmark.runner.conformance import check_label

    mark = "conformant" if verdict.conformant else "NOT conformant"
    yield f"{verdict.framework} {verdict.version or ''} ({verdict.device}): {mark}".replace("  ", " ")
    names = [check_label(check) for check in verdict.checks]
    width = max(16, *map(len, names))
    for name, check in zip(names, verdict.checks, strict=True):
        yield from _check_lines(f"  {name:<{width}}", check)


def _check_lines(name: str, check: ConformanceCheck) -> Iterator[str]:
    if check.refused is not None:
        yield f"{name} refused: {check.refused}"
    elif check.failed is not None:
        yield f"{name} failed: {check.failed}"
    elif check.passed:
        remark = f"; {check.remark}" if check.remark else ""
        yield f"{name} same to {check.largest_loss_error:.0e} in the loss{remark}"
    else:
        yield f"{name} {len(check.differs)} figures differ:"
        yield from (f"    {difference}" for difference in check.differs[:SHOWN])
        if len(check.differs) > SHOWN:
            yield f"    and {len(check.differs) - SHOWN} more (--json shows all)"
