"""Options that several commands share, and what they check."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from trainmark.base.errors import UserError, nearest
from trainmark.base.text import one_line
from trainmark.launch import options
from trainmark.workloads import registry
from trainmark.workloads.declaration import Workload
from trainmark.workloads.registry import Family

if TYPE_CHECKING:
    from trainmark.measure.cost import Price
    from trainmark.store.run import RunFolder


runs_option = click.option(
    "--runs",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("runs"),
    envvar="TRAINMARK_RUNS",
    show_default=True,
    help="The folder that holds the runs.",
)
workload_option = click.option(
    "--workload",
    default=registry.DEFAULT,
    show_default=True,
    metavar="NAME|FOLDER",
    help="A built-in workload, an installed one, or the folder of one.",
)
price_option = click.option(
    "--price",
    callback=lambda _context, _option, text: _price(text),
    metavar="AMOUNT/h",
    help="Cost of one device for an hour, as in 2.50/h; 98/node-h is that of one node.",
)
json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")

lang_option = click.option(
    "--lang", type=click.Choice(["en", "zh"]), default="en", help="The language of md, html and text."
)


def is_given(parameter: str) -> bool:
    """Whether the command line names the parameter, rather than its default holding."""
    source = click.get_current_context().get_parameter_source(parameter)
    return source is not None and source.name == "COMMANDLINE"


def share(_context: click.Context, option: click.Parameter, text: str) -> float:
    """Parse `1%` or 0.01."""
    from trainmark.suite.values import share as share_of

    try:
        value = share_of(text if text.endswith("%") else float(text))
    except ValueError as error:
        raise click.UsageError(f"--{option.name} takes a share such as 1% or 0.01, not {text}.") from error
    if value >= 1:
        raise click.UsageError(f"--{option.name} takes a share below 100 %, not {text}.")
    return value


def duration(_context: click.Context, option: click.Parameter, text: str | None) -> float | None:
    """Parse `30m`, `2h` or seconds."""
    from trainmark.suite.values import duration as duration_of

    try:
        return None if text is None else duration_of(float(text) if text.isdecimal() else text)
    except ValueError as error:
        raise click.UsageError(f"{option.opts[0]} {error}.") from error


def _price(text: str | None) -> Price | None:
    if text is None:
        return None
    from trainmark.measure.cost import parse_price

    try:
        return parse_price(text)
    except ValueError as error:
        raise click.UsageError(f"--price: {error}.") from error


def axis_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add an option for each axis of the built-in workloads, and `--axis` for all others."""
    workloads = [family.workload for family in registry.built_in().values()]
    built_in = {axis.name: axis for workload in workloads for axis in workload.axes}
    for axis in reversed(built_in.values()):
        kind = click.IntRange(min=1) if isinstance(axis.default, int) else click.STRING
        help_text = f"The {axis.title}; {_default(axis.name, workloads)} if not given."
        command = click.option(axis.option, axis.name, type=kind, help=help_text)(command)
    named = click.option(
        "--axis", "axes", multiple=True, metavar="NAME=VALUE", help="An axis of the workload."
    )
    return named(command)


def _default(name: str, workloads: Sequence[Workload]) -> str:
    """Return the default of an axis, by workload where they differ."""
    defaults = {workload.name: workload.defaults[name] for workload in workloads if name in workload.defaults}
    if len(set(defaults.values())) == 1:
        return str(next(iter(defaults.values())))
    return ", ".join(f"{value} ({workload})" for workload, value in defaults.items())


def axes_of(family: Family, named: dict[str, Any], pairs: tuple[str, ...]) -> tuple[tuple[str, Any], ...]:
    """Return the value of each axis of a workload, its default where no option gives one."""
    known = {axis.name: axis for axis in family.workload.axes}
    given = {name: value for name, value in named.items() if value is not None}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals or not value:
            raise UserError(f"--axis {pair} is no axis; write NAME=VALUE.")
        given[name] = value
    for name in given:
        if name not in known:
            raise UserError(f"{family.workload.name} has no axis '{name}'{nearest(name, known)}")
    return tuple((name, axis.parse(given.get(name, axis.default))) for name, axis in known.items())


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

    declared = options.carrier_options()

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
    from trainmark.base.errors import nearest
    from trainmark.launch import hosts as written
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
    launcher = launcher or ("ssh" if nodes else options.LOCAL)
    if launcher not in options.names():
        raise UserError(f"there is no launcher '{launcher}'{nearest(launcher, options.names())}")
    if launcher == options.LOCAL and given:
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


# Options of `trainmark run` that say where to run.
NODE_FLAGS = frozenset(
    ("--hosts", "--hostfile", "--inventory", "--label", "--exclude", "--launcher", "--nodes", "--interface")
)


class OneMachineCommand(click.Command):
    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption as error:
            if error.option_name in NODE_FLAGS:
                raise click.UsageError(
                    f"{self.name} measures on this machine only; leave out {error.option_name}."
                ) from error
            raise


def tell_damage(*runs: RunFolder) -> None:
    """Print a line on standard error for each file that could not be used."""
    for run in runs:
        for damage in run.damaged.values():
            click.echo(one_line(f"trainmark: {run.path}/{damage.sentence}"), err=True)
