"""`trainmark doctor` and `env`: what is wrong with the machines, and what they are."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from trainmark.base.errors import UserError
from trainmark.cli.complete import complete_framework
from trainmark.cli.crash import tell_next
from trainmark.cli.options import cluster_options, json_option
from trainmark.cli.terminal import print_json

if TYPE_CHECKING:
    from trainmark.launch.nodes import Node
    from trainmark.launch.options import LaunchOptions
    from trainmark.machine.devices import Device, Devices
    from trainmark.machine.environment import Environment
    from trainmark.machine.examination import Asker, Interpreter
    from trainmark.machine.host import Host
    from trainmark.machine.network import MachineFabric
    from trainmark.machine.software import InstalledLibrary, Software


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
    from trainmark.machine.frameworks import install_hint, locks, python_of
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


NOT_FOUND = "not found"
Line = tuple[str, str | None]


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
    if as_json:
        import json

        click.echo(json.dumps(to_dict(environment), indent=2))
        return
    _print(environment, fingerprint(environment))


def _print(environment: Environment, fingerprint: str) -> None:
    from rich.table import Table
    from rich.text import Text

    from trainmark.cli.terminal import console as visible_console

    console = visible_console()
    for title, lines in _sections(environment, fingerprint).items():
        console.print(Text(title, style="bold"))
        table = Table.grid(padding=(0, 2), pad_edge=False)
        table.add_column(min_width=15, no_wrap=True, style="cyan")
        table.add_column(overflow="fold")
        for label, value in lines:
            table.add_row(f"  {label}", Text(value) if value else Text(NOT_FOUND, style="dim"))
        console.print(table)
    if environment.topology:
        console.print(Text("GPU topology", style="bold"))
        # The matrix is aligned by its own hand; folding it would make it unreadable.
        console.print(Text(environment.topology), soft_wrap=True)


def _sections(environment: Environment, fingerprint: str) -> dict[str, list[Line]]:
    git, container = environment.git, environment.container
    libraries = environment.libraries
    commit = f"{git.commit[:12]}{' with uncommitted changes' if git.dirty else ''}" if git else None
    return {
        "Host": _host_lines(environment.host),
        "Container": [
            ("kind", container.kind if container else None),
            ("image", container.image if container else None),
        ],
        "Devices": _device_lines(environment.devices, environment.topology),
        "Libraries": [
            ("CUDA", _libraries(libraries.cuda_toolkit)),
            ("cuDNN", _libraries(libraries.cudnn)),
            ("NCCL", _libraries(libraries.nccl)),
            ("MPI", _libraries(libraries.mpi)),
        ],
        "Fabric": _fabric_lines(environment.fabric),
        "Software": _software_lines(environment.software),
        "Measurement": [("git commit", commit), ("fingerprint", fingerprint)],
    }


def _host_lines(host: Host) -> list[Line]:
    cpu = host.cpu
    counts = (("sockets", cpu.sockets), ("cores", cpu.cores), ("threads", cpu.threads))
    numa = [f"{node.node}: CPUs {node.cpus}, {_gibibytes(node.memory_bytes)}" for node in host.numa or ()]
    return [
        ("hostname", host.hostname),
        ("system", f"{host.system} ({host.kernel} {host.architecture})"),
        ("product", host.product),
        ("virtualised", host.virtualisation),
        ("CPU", cpu.model),
        ("CPU count", ", ".join(f"{name} {count}" for name, count in counts if count) or None),
        ("CPU governor", cpu.governor),
        ("CPU turbo", _switch(cpu.turbo)),
        ("memory", _gibibytes(host.memory_bytes)),
        ("NUMA nodes", "\n".join(numa) or None),
    ]


def _device_lines(devices: Devices, topology: str | None) -> list[Line]:
    gpus: list[Line] = [(f"GPU {gpu.index}", _gpu(gpu)) for gpu in devices.gpus]
    return [
        ("driver", devices.driver),
        ("CUDA (driver)", devices.cuda_driver),
        *(gpus or [("GPUs", devices.missing)]),
        ("topology", "below" if topology else None),
    ]


def _gpu(gpu: Device) -> str:
    facts = {
        "memory": _gibibytes(gpu.memory_bytes),
        "compute": gpu.compute_capability,
        "power limit": f"{gpu.power_limit_watts:.0f} W" if gpu.power_limit_watts else None,
        "max clock": f"{gpu.max_sm_clock_mhz} MHz" if gpu.max_sm_clock_mhz else None,
        "memory clock": f"{gpu.max_memory_clock_mhz} MHz" if gpu.max_memory_clock_mhz else None,
        "PCIe": gpu.pcie,
        "bus": gpu.pci_bus,
        "ECC": _switch(gpu.ecc),
        "MIG": _switch(gpu.mig),
        "persistence": _switch(gpu.persistence),
        "uuid": gpu.uuid,
    }
    description = ", ".join(f"{name} {value or NOT_FOUND}" for name, value in facts.items())
    return f"{gpu.name or NOT_FOUND}\n{description}"


def _fabric_lines(fabric: MachineFabric) -> list[Line]:
    ports = [
        f"{port.device}/{port.port}: {port.state}, {port.rate}, {port.link_layer}, {port.board}"
        for port in fabric.infiniband or ()
    ]
    interfaces = [
        f"{card.name}: {card.state}, {f'{card.speed_mbps} Mb/s' if card.speed_mbps else 'speed not found'}, "
        f"MTU {card.mtu}"
        for card in fabric.interfaces or ()
    ]
    return [("InfiniBand", "\n".join(ports) or None), ("interfaces", "\n".join(interfaces) or None)]


def _software_lines(software: Software) -> list[Line]:
    python = f"{software.python} ({software.implementation})" if software.python else None
    variables = "\n".join(f"{name}={value}" for name, value in software.variables.items())
    return [
        ("Python", python),
        *software.frameworks.items(),
        *_present_then_absent(software.packages),
        ("variables", variables or "none that tunes speed is set"),
    ]


def _present_then_absent(packages: Mapping[str, str | None]) -> Iterator[Line]:
    yield "packages", ", ".join(f"{name} {version}" for name, version in packages.items() if version) or None
    absent = [name for name, version in packages.items() if not version]
    if absent:
        yield "not installed", ", ".join(absent)


def _libraries(libraries: tuple[InstalledLibrary, ...] | None) -> str | None:
    return "\n".join(f"{library.version} ({library.source})" for library in libraries or ()) or None


def _gibibytes(count: int | None) -> str | None:
    return f"{count / (1 << 30):.1f} GiB" if count else None


def _switch(state: bool | None) -> str | None:
    return None if state is None else "on" if state else "off"
