"""`trainmark fabric`: how fast messages go between the ranks, and which link is slow."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import TYPE_CHECKING

import click

from trainmark.base.errors import UserError
from trainmark.cli.complete import complete_run
from trainmark.cli.options import cluster_options, json_option, runs_option
from trainmark.cli.terminal import print_json, terminal_width

if TYPE_CHECKING:
    from trainmark.launch.options import LaunchOptions
    from trainmark.measure.fabric import FabricMeasurement
    from trainmark.suite.model import Topology
    from trainmark.suite.plan import Resources

FAILED, INTERRUPTED = 1, 130
SIZES = "8,1K,16K,128K,1M,8M,64M"


@click.command("fabric")
@click.option(
    "--topology", "written", help="Nodes and ranks a node, as in 1n4g; all GPUs, else a rank a node."
)
@click.option("--device", type=click.Choice(["cpu", "cuda"]), help="cuda where there is a GPU, else cpu.")
@click.option("--sizes", default=SIZES, show_default=True, help="Message sizes in bytes, two or more.")
@click.option(
    "--seconds",
    type=click.FloatRange(0.01, 600),
    default=2.0,
    show_default=True,
    help="Time for each link, and for each all-reduce.",
)
@click.option(
    "--together",
    is_flag=True,
    help="Let pairs that share no rank talk at the same time: quicker, and loaded.",
)
@click.option(
    "--run",
    "run_name",
    metavar="RUN",
    shell_complete=complete_run,
    help="Keep it as fabric.json in the folder of this run.",
)
@click.option("--output", type=click.Path(dir_okay=False, path_type=Path), help="Keep it in this file.")
@click.option(
    "--map", "map_file", type=click.Path(dir_okay=False, path_type=Path), help="Draw it: .svg or .html."
)
@runs_option
@cluster_options
@json_option
def fabric_command(
    written: str | None,
    device: str | None,
    sizes: str,
    seconds: float,
    together: bool,
    run_name: str | None,
    output: Path | None,
    map_file: Path | None,
    runs: Path,
    choice: LaunchOptions,
    as_json: bool,
) -> int:
    """Time messages between ranks: point to point and all-reduce, by size; name the slow link.

    Every pair of ranks plays ping-pong, one pair at a time. With more than 16 ranks it is the first rank of
    every node with that of every other, and each rank with the next on its node. Exit code 1: a rank failed.

    \b
    Examples:
      trainmark fabric
      trainmark fabric --topology 1n4g --map fabric.svg
      trainmark fabric --run latest --json
      trainmark fabric --hosts node1,node2,node3,node4 --map fabric.html
    """
    from trainmark.runner.cluster import launch_target
    from trainmark.runner.fabric import FabricError, FabricRequest, measure_fabric
    from trainmark.runner.interrupts import Interrupts
    from trainmark.runner.inventory import interpreter_of
    from trainmark.store.files import write_json
    from trainmark.store.measurements import FABRIC, encode_fabric
    from trainmark.store.run import find_run

    python = interpreter_of("pytorch")
    if python is None:
        raise UserError("the fabric is measured with PyTorch; `trainmark frameworks install pytorch`.")
    place = launch_target(choice, [python])
    device = device or place.machine.device
    topology = _topology(written, place.machine, device)
    wanted = FabricRequest(topology, device, _sizes(sizes), seconds, together)
    record_paths = [find_run(run_name, runs).path / FABRIC] if run_name else []
    record_paths += [output] if output else []
    for path in [*record_paths, *([map_file] if map_file else [])]:
        _require_place(path)
    if map_file and map_file.suffix not in (".svg", ".html"):
        raise UserError(f"a map is an .svg or an .html file; {map_file.name} is neither.")
    click.echo(_announced(wanted.estimate, topology), err=True)
    with contextlib.closing(place), Interrupts(lambda message: click.echo(message, err=True)) as interrupts:
        try:
            fabric = measure_fabric(
                wanted, place.launcher, python, lambda: interrupts.stop_now() or interrupts.stop_soon
            )
        except FabricError as error:
            click.echo(f"trainmark: {error}", err=True)
            return INTERRUPTED if interrupts.stop_soon else FAILED
    for path in record_paths:
        write_json(path, encode_fabric(fabric))
    if map_file:
        _draw(fabric, map_file)
    if as_json:
        print_json(encode_fabric(fabric))
    else:
        from trainmark.pages.fabric import fabric_page
        from trainmark.view import terminal

        click.echo(terminal.render(fabric_page(fabric), width=terminal_width()), nl=False)
        for path in [*record_paths, *([map_file] if map_file else [])]:
            click.echo(f"kept in {path}", err=True)
    return 0


def _announced(estimate: float, topology: Topology) -> str:
    time = f"{estimate:.0f} s" if estimate < 120 else f"{estimate / 60:.0f} min"
    return f"measuring the links of {topology}, about {time}"


def _topology(written: str | None, machine: Resources, device: str) -> Topology:
    from trainmark.suite.model import Topology, parse_topology

    if written is None:
        alone = 2 if machine.nodes == 1 else 1
        topology = Topology(machine.nodes, machine.devices if device == "cuda" else alone)
    else:
        try:
            topology = parse_topology(written)
        except ValueError as error:
            raise UserError(f"--topology: {error}.") from error
    if topology.nodes > machine.nodes:
        raise UserError(
            f"{topology} needs {topology.nodes} nodes, and there are {machine.nodes}; see --hosts."
        )
    if topology.devices < 2:
        raise UserError(f"{topology} is one rank, and a link has two; ask for more, or for --device cpu.")
    return topology


def _sizes(text: str) -> tuple[int, ...]:
    from trainmark.measure.quantity import parse_bytes

    try:
        sizes = tuple(sorted({parse_bytes(size) for size in text.split(",")}))
    except ValueError as error:
        raise UserError(f"--sizes: {error}.") from error
    if len(sizes) < 2:
        raise UserError("--sizes: latency and bandwidth need two sizes at least, as in 8,16M.")
    return sizes


def _require_place(path: Path) -> None:
    """Before minutes are spent on what then cannot be kept."""
    if path.is_dir():
        raise UserError(f"{path} is a folder; name the file to write.")
    if not path.absolute().parent.is_dir():
        raise UserError(f"there is no folder {path.parent} for {path.name}; make it, or name another.")


def _draw(fabric: FabricMeasurement, path: Path) -> None:
    from trainmark.base.files import write_text
    from trainmark.pages import fabric_map
    from trainmark.pages.fabric import fabric_page
    from trainmark.view import html

    drawn = html.render(fabric_page(fabric)) if path.suffix == ".html" else fabric_map.render(fabric)
    write_text(path, drawn)
