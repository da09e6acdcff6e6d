"""`trainmark doctor`: what is wrong on a node or different between nodes, before a run."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import click

from trainmark.cli.common.cluster_options import cluster_options
from trainmark.cli.common.complete import complete_framework
from trainmark.cli.common.next_step import tell_next
from trainmark.cli.common.options import json_option
from trainmark.cli.common.terminal import print_json
from trainmark.errors import UserError

if TYPE_CHECKING:
    from trainmark.doctor.wanted import Interpreter
    from trainmark.launch.asking import Asker
    from trainmark.launch.nodes.node import Node
    from trainmark.launch.options import LaunchOptions

HEALTHY, SICK = 0, 1
HIGHEST_PORT = 65535


@click.command("doctor", short_help="Look for what would spoil a run, and say how to mend it.")
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
    from trainmark.doctor.diagnosis import examine
    from trainmark.doctor.wanted import Wanted

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
        from trainmark.cli.common.terminal import console
        from trainmark.doctor.show import print_diagnosis

        print_diagnosis(diagnosis, console())
        if diagnosis.is_healthy:
            tell_next("doctor")
    return HEALTHY if diagnosis.is_healthy else SICK


@contextlib.contextmanager
def _asked(choice: LaunchOptions) -> Iterator[tuple[Asker, Sequence[Node]]]:
    """Who is asked, and what was said of them."""
    from trainmark.launch.asking import AskHere, AskNodes
    from trainmark.launch.launchers import launcher_of
    from trainmark.launch.nodes.node import Node

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
    from trainmark.doctor.wanted import Interpreter
    from trainmark.environments import install_hint, locks, python_of
    from trainmark.runner.program.frameworks import interpreter_of

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
