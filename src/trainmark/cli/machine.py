"""`trainmark doctor` and `env`: what is wrong with the machines, and what they are."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from trainmark.base.errors import UserError
from trainmark.cli.complete import complete_framework
from trainmark.cli.crash import tell_next
from trainmark.cli.options import cluster_options, json_option
from trainmark.cli.terminal import print_json, terminal_width

if TYPE_CHECKING:
    from trainmark.launch.nodes import Node
    from trainmark.launch.options import LaunchOptions
    from trainmark.machine.examination import Asker, Interpreter


HEALTHY, SICK = 0, 1
HIGHEST_PORT = 65535


@click.command("doctor")
@click.option(
    "--framework",
    "frameworks",
    multiple=True,
    shell_complete=complete_framework,
    help="Look only at this framework's environment.",
)
@click.option("--python", help="Look at this interpreter instead of Trainmark's environments.")
@click.option("--dataset", help="Compare the dataset at this path: its files' names and sizes.")
@click.option("--deep", is_flag=True, help="Compare also all that is in the dataset's files.")
@click.option("--ports", default="29500-29507", show_default=True, help="Ports that are to be free.")
@click.option("--scratch", default="/tmp", show_default=True, help="Where there is to be room on the disk.")
@click.option("--timeout", type=click.FloatRange(1), default=60, help="Seconds a node has to answer.")
@cluster_options
@json_option
def doctor_command(
    frameworks: tuple[str, ...],
    python: str | None,
    dataset: str | None,
    deep: bool,
    ports: str,
    scratch: str,
    timeout: float,
    choice: LaunchOptions,
    as_json: bool,
) -> int:
    """Look for what would spoil a run, on each node and between nodes, and say how to mend it.

    Nothing is changed, and no framework is imported. Exits with 1 where something is red; warnings alone
    exit with 0.

    \b
    Examples:
      trainmark doctor
      trainmark doctor --hosts node1,node2,node3,node4 --framework pytorch --dataset /data/imagenet
      trainmark doctor --json > doctor.json
    """
    from trainmark.machine.diagnosis import examine
    from trainmark.machine.examination import Wanted

    if deep and dataset is None:
        raise UserError("--deep reads a dataset: name it with --dataset PATH.")
    wanted = Wanted(
        interpreters=_interpreters(frameworks, python),
        ports=ports_of(ports),
        scratch=scratch,
        dataset=dataset,
        deep=deep,
        seconds=timeout,
        framework=python is None,
    )
    with _asked(choice) as (ask, nodes):
        addresses = {node.name: node.address for node in nodes if node.address}
        interfaces = {node.name: name for node in nodes if (name := node.interface or choice.interface)}
        diagnosis = examine(ask, replace(wanted, addresses=addresses, interfaces=interfaces))
    if as_json:
        print_json(diagnosis.as_dict())
    else:
        from trainmark.cli.terminal import console
        from trainmark.machine.diagnosis_table import print_diagnosis

        print_diagnosis(diagnosis, console())
        if diagnosis.is_healthy:
            tell_next("doctor")
    return HEALTHY if diagnosis.is_healthy else SICK


@contextlib.contextmanager
def _asked(choice: LaunchOptions) -> Iterator[tuple[Asker, Sequence[Node]]]:
    """Who is asked, and what was said of them."""
    from trainmark.launch.asking import AskHere, AskNodes
    from trainmark.launch.nodes import Node
    from trainmark.launch.options import launcher_of

    if choice.is_local:
        here = AskHere()
        yield here, [Node(name, interface=choice.interface) for name in here.nodes]
        return
    launcher = launcher_of(choice)
    try:
        yield AskNodes(launcher), launcher.nodes
    finally:
        launcher.close()


def _interpreters(frameworks: tuple[str, ...], python: str | None) -> tuple[Interpreter, ...]:
    """Return the one named, or those that a run of these frameworks (of any installed) would use."""
    from trainmark.machine.examination import Interpreter
    from trainmark.machine.frameworks import locks
    from trainmark.machine.frameworks.installed import install_hint, python_of
    from trainmark.runner.inventory import interpreter_of

    if python is not None:
        return (Interpreter("python", python),)
    for name in frameworks:
        locks.refuse_unknown(name)
        if interpreter_of(name) is None:
            raise UserError(f"{name} is not installed; {install_hint(name)}.")
    interpreters = [
        Interpreter(name, path, f"trainmark frameworks install {name}")
        for name in frameworks or locks.names()
        if (path := python_of(name)) is not None
    ]
    beside_us = [name for name in frameworks or locks.names() if interpreter_of(name) == sys.executable]
    if beside_us or not interpreters:
        interpreters.append(Interpreter("python", sys.executable))
    return tuple(interpreters)


def ports_of(text: str) -> tuple[int, ...]:
    """`29500`, `29500-29507` or several of them with commas between."""
    ports: list[int] = []
    for part in text.split(","):
        first, dash, last = part.strip().partition("-")
        if not first.isdecimal() or (dash and not last.isdecimal()):
            raise UserError(f"--ports {text} is no list of ports: write it as 29500-29507 or 29500,29600.")
        # Thousands of digits are not even converted.
        if max(len(first), len(last)) > 9 or not 1 <= int(first) <= int(last or first) <= HIGHEST_PORT:
            raise UserError(f"--ports {text}: {part} does not lie within 1 to {HIGHEST_PORT}.")
        ports += range(int(first), int(last or first) + 1)
    return tuple(dict.fromkeys(ports))


@click.command("env")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of text.")
@click.option(
    "--python",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Name the frameworks of this interpreter instead of Trainmark's own.",
)
def env_command(as_json: bool, python: Path | None) -> None:
    """Show the machine, its devices, drivers, libraries and frameworks.

    What was looked for and is not there is named too. No framework is imported, and of the environment
    variables only those that tune speed are shown.

    \b
    Example:
      trainmark env --python /opt/torch/bin/python --json > environment.json
    """
    from trainmark.machine.environment import capture, fingerprint, to_dict

    environment = capture(folder=Path.cwd(), python=python)
    if python is not None and environment.software.python is None:
        raise click.ClickException(f"{python} did not answer as Python does: check `{python} --version`.")
    facts = to_dict(environment)
    if as_json:
        print_json(facts)
        return
    from trainmark.pages.run.environment import environment_page
    from trainmark.view import terminal

    page = environment_page(facts, fingerprint(environment))
    click.echo(terminal.render(page, width=terminal_width()), nl=False)
