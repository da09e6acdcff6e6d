"""Options that several commands share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from trainmark.errors import UserError, nearest
from trainmark.workloads import registry
from trainmark.workloads.declaration import Workload
from trainmark.workloads.registry import Family

if TYPE_CHECKING:
    from trainmark.measure.cost import Price

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
    "--lang", type=click.Choice(["en", "zh"]), default="en", help="The language of the report."
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
