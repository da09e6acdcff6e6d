"""The options that say where to run, for every command that can run on other machines."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from trainmark.errors import UserError
from trainmark.launch import launchers

NAMES = (
    *("hosts", "hostfile", "inventory", "labels", "exclude", "launcher", "count", "interface", "passed"),
    "options",
)
FILE = click.Path(exists=True, dir_okay=False, path_type=Path)
VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
OPTIONS = (
    click.option("--hosts", metavar="A,B,…", help="The nodes, in the order of use; `node1:8` has 8 slots."),
    click.option("--hostfile", type=FILE, help="A host a line, with slots=8 where it is not all of a node."),
    click.option("--inventory", type=FILE, help="Nodes in YAML: address, devices, interface, labels."),
    click.option("--label", "labels", multiple=True, help="Only nodes of the inventory with this label."),
    click.option("--exclude", metavar="A,B,…", help="Hosts to leave out."),
    click.option("--launcher", help="local, ssh, slurm, mpi or ray; ssh where hosts are named."),
    click.option("--nodes", "count", type=click.IntRange(1), help="How many nodes to ask Slurm or Ray for."),
    click.option("--interface", help="The network interface that the ranks talk over."),
    click.option("--pass-env", "passed", multiple=True, metavar="NAME", help="Give the ranks this variable."),
    click.option(
        "--launcher-option", "options", multiple=True, metavar="WORD",
        help="Extra argument for salloc or mpirun, or an ssh -o option.",
    ),
)  # fmt: skip


def cluster_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Adds them and gives the command one `choice` in their place."""

    declared = launchers.carrier_options()

    @functools.wraps(command)
    def with_choice(**given: Any) -> Any:
        chosen = {name: given.pop(name) for name in NAMES}
        own = {option.name: given.pop(option.name) for option in declared}
        return command(choice=_choice(**chosen, own=own), **given)

    of_carriers = [
        click.option(option.flag, type=FILE if option.is_file else str, help=option.help)
        for option in declared
    ]
    for option in reversed([*OPTIONS, *of_carriers]):
        with_choice = option(with_choice)
    return with_choice


def _choice(
    hosts: str | None,
    hostfile: Path | None,
    inventory: Path | None,
    labels: tuple[str, ...],
    exclude: str | None,
    launcher: str | None,
    passed: tuple[str, ...],
    own: dict[str, str | Path | None],
    **rest: Any,
) -> Any:
    from trainmark.errors import nearest
    from trainmark.launch.nodes import hosts as written
    from trainmark.launch.options import LaunchOptions

    given = [each for each in (hosts, hostfile, inventory) if each is not None]
    if len(given) > 1:
        raise UserError("give one of --hosts, --hostfile and --inventory.")
    nodes: Any = ()
    if hosts is not None:
        nodes = written.from_list(hosts)
    elif hostfile is not None:
        nodes = written.from_hostfile(hostfile)
    elif inventory is not None:
        nodes = written.from_inventory(inventory)
    if labels:
        nodes = written.labelled(nodes, labels)
    excluded = tuple(node.name for node in written.from_list(exclude)) if exclude else ()
    if unknown := [name for name in excluded if nodes and name not in {node.name for node in nodes}]:
        raise UserError(f"--exclude: {unknown[0]} is none of the hosts.")
    launcher = launcher or ("ssh" if nodes else launchers.LOCAL)
    if launcher not in launchers.names():
        raise UserError(f"there is no launcher '{launcher}'{nearest(launcher, launchers.names())}")
    if launcher == launchers.LOCAL and given:
        raise UserError("--launcher local runs on this machine only; leave out the hosts.")
    if wrong := [name for name in passed if not VARIABLE.fullmatch(name)]:
        raise UserError(f"--pass-env takes the name of a variable, not {wrong[0]!r}.")
    carrier_options = tuple(
        (name, str(value.absolute() if isinstance(value, Path) else value))
        for name, value in own.items()
        if value is not None
    )
    return LaunchOptions(
        launcher=launcher, nodes=nodes, passed=passed, own=carrier_options, excluded=excluded, **rest
    )
