"""`trainmark frameworks`: install, list and remove environments."""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, NoReturn

import click

from trainmark.base.errors import UserError
from trainmark.cli.complete import complete_framework
from trainmark.cli.crash import tell_next
from trainmark.cli.options import json_option
from trainmark.cli.progress import Progress
from trainmark.cli.terminal import print_json, terminal_width
from trainmark.view import terminal
from trainmark.view.blocks import Table

if TYPE_CHECKING:
    from trainmark.runner.inventory import FrameworkStatus


ALL = "all"
FAILED = 2
COLUMNS = ("framework", "state", "version", "Python", "device", "precisions", "conformant")
UNKNOWN = "–"


@click.group("frameworks", invoke_without_command=True)
@click.option("--python", help="Ask this interpreter of your own instead of Trainmark's environments.")
@json_option
@click.pass_context
def frameworks_command(context: click.Context, python: str | None, as_json: bool) -> int:
    """Show each framework: is it installed, which version, what it sees here and can do.

    A framework is asked in a process of its own; none is imported into Trainmark.

    \b
    Examples:
      trainmark frameworks
      trainmark frameworks install jax tensorflow
      trainmark frameworks --python /opt/torch/bin/python --json
    """
    if context.invoked_subcommand is not None:
        return 0
    rows = [(standing, _conformant(standing)) for standing in _standings(python)]
    if as_json:
        print_json([_record(*row) for row in rows])
        return 0
    click.echo("\n".join([*_table(rows), *_remarks([standing for standing, _ in rows])]))
    return 0


@frameworks_command.command("install", short_help="Install frameworks, each into an environment of its own.")
@click.argument("names", nargs=-1, required=True, metavar="NAME...", shell_complete=complete_framework)
@click.option("--python", help="Make the environment with this Python.")
@click.option("--force", is_flag=True, help="Make it anew, also where it is installed.")
def install_command(names: tuple[str, ...], python: str | None, force: bool) -> int:
    """Give each framework NAME an environment of its own, from the versions that Trainmark locks.

    `all` means every framework that there is for this platform. What is interrupted leaves nothing behind.

    \b
    Examples:
      trainmark frameworks install jax
      trainmark frameworks install oneflow --python python3.10
    """
    from trainmark.machine.frameworks.install import install

    failed = 0
    wanted = _wanted(names)
    with _ended_by_a_signal():
        for name in wanted:
            try:
                with Progress(name) as display:
                    made = install(name, display, python=python, force=force)
            except UserError as error:
                if len(wanted) == 1:
                    raise
                failed += 1
                click.echo(f"trainmark: {error}", err=True)
            else:
                click.echo(f"{name} {made.version} with Python {made.python_version}: {made.python}")
                tell_next("frameworks install", name=name)
    return FAILED if failed else 0


@frameworks_command.command("remove", short_help="Remove the environments of frameworks.")
@click.argument("names", nargs=-1, required=True, metavar="NAME...", shell_complete=complete_framework)
def remove_command(names: tuple[str, ...]) -> int:
    """Remove the environment of each framework NAME, also one that an interrupted install has left.

    \b
    Example:
      trainmark frameworks remove jax
    """
    from trainmark.machine.frameworks import locks
    from trainmark.machine.frameworks.install import remove

    for name in names:
        locks.refuse_unknown(name)
    for name in names:
        was_there = remove(name, Progress(name))
        click.echo(f"{name} removed" if was_there else f"{name} was not installed")
    return 0


def _conformant(standing: FrameworkStatus) -> bool | None:
    """Whether this version passed the checks of conformance on this device; None where it was not checked."""
    from trainmark.runner import conformance
    from trainmark.runner.conformance import code_digest
    from trainmark.workloads import registry

    family = registry.find(registry.DEFAULT)
    if standing.interpreter is None or standing.device is None:
        return None
    name, digest = standing.framework, code_digest(family, standing.framework)
    verdict = conformance.find(
        family.workload.name, name, standing.version, standing.interpreter, standing.device, digest
    )
    return verdict.conformant if verdict else None


def _wanted(names: Sequence[str]) -> list[str]:
    """Every name known, `all` taken apart, none twice."""
    from trainmark.machine.frameworks import locks
    from trainmark.machine.frameworks.installed import State, standing

    wanted: list[str] = []
    for name in names:
        if name == ALL:
            wanted += [each for each in locks.names() if standing(each)[0] is not State.UNAVAILABLE]
        else:
            locks.refuse_unknown(name)
            wanted.append(name)
    return list(dict.fromkeys(wanted))


@contextlib.contextmanager
def _ended_by_a_signal() -> Iterator[None]:
    """A request to terminate is as Ctrl-C: what is half made goes first."""

    def stop(*_: Any) -> NoReturn:
        raise KeyboardInterrupt

    numbers = (signal.SIGTERM, signal.SIGHUP)
    before = {number: signal.signal(number, stop) for number in numbers if _heeded(number)}
    try:
        yield
    except KeyboardInterrupt:
        click.echo("trainmark: stopped; nothing half-installed is left.", err=True)
        raise
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _heeded(number: signal.Signals) -> bool:
    """Not so for SIGHUP under nohup."""
    return signal.getsignal(number) is not signal.SIG_IGN


def _standings(python: str | None) -> list[FrameworkStatus]:
    from trainmark.machine.frameworks.interpreters import named
    from trainmark.runner.inventory import framework_statuses

    python = named(python)[0] if python else None
    with Progress("looking") as display:
        return framework_statuses(python, lambda name: display.show(f"asking {name}"))


def _record(standing: FrameworkStatus, conformant: bool | None) -> dict[str, Any]:
    return {**asdict(standing), "conformant": conformant}


def _table(rows: Sequence[tuple[FrameworkStatus, bool | None]]) -> list[str]:
    words = {True: "yes", False: "no", None: "not checked"}
    cells = [
        (
            row.framework,
            row.state,
            row.version or UNKNOWN,
            row.python or UNKNOWN,
            row.device or UNKNOWN,
            ", ".join(row.precisions or ()) or UNKNOWN,
            words[conformant] if row.installed else UNKNOWN,
        )
        for row, conformant in rows
    ]
    return terminal.table(Table(COLUMNS, cells), terminal_width())


def _remarks(standings: Sequence[FrameworkStatus]) -> Iterator[str]:
    """Why a framework is not as it should be, and what mends it."""
    remarks = [
        f"{row.framework}: " + "; ".join(dict.fromkeys(filter(None, (row.reason, _as_command(row.fix)))))
        for row in standings
        if row.reason
    ]
    absent = [row.framework for row in standings if row.state == "absent" and not row.reason]
    if absent:
        remarks.append(f"to install: trainmark frameworks install {' '.join(absent)}")
    yield from ["", *remarks] if remarks else []


def _as_command(fix: str | None) -> str | None:
    return f"`{fix}` mends it" if fix and fix.startswith("trainmark ") else fix
