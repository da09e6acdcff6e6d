"""GPUs: which, with which driver and settings, in which health, and whether somebody is at work on them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from trainmark.machine.examination import Examination, Gpu, NodeFacts, most_common
from trainmark.machine.findings import (
    IDLE_MEMORY_MIB,
    IDLE_TEMPERATURE,
    POWER_CAPPED,
    THROTTLED,
    CheckArea,
    NodeFinding,
    NodeReport,
    node_check,
)


@node_check("devices", CheckArea.DEVICES)
def devices(examined: Examination) -> Iterator[NodeFinding]:
    kinds = examined.each(gpu_counts)
    usual = most_common(kinds)
    for node, facts in examined.facts():
        own = kinds[node]
        report = NodeReport(node, own)
        if facts.gpu_trouble:
            report.bad(
                f"nvidia-smi fails: {facts.gpu_trouble}",
                f"on {node}: `sudo dmesg | grep -i nvrm` says why; a reboot mends most of it",
                "not told",
            )
        elif own != usual:
            report.bad(
                f"it has {own}, the others {usual}",
                f"on {node}: `nvidia-smi -L` names them; a GPU that fell off the bus comes back by a reboot; "
                f"else leave it out with --exclude {node}",
            )
        elif facts.gpu_cards and not facts.gpus:
            report.warn(
                f"there are {facts.gpu_cards} NVIDIA GPUs on the bus, and no nvidia-smi",
                f"on {node}: install the driver, or start the container with `--gpus all`",
            )
        yield from report


def gpu_counts(facts: NodeFacts) -> str:
    counts = Counter(gpu.name for gpu in facts.gpus)
    return ", ".join(f"{count} × {name}" for name, count in sorted(counts.items())) or "no GPU"


@node_check("driver", CheckArea.DEVICES)
def driver(examined: Examination) -> Iterator[NodeFinding]:
    drivers = {name: facts.gpus[0].driver for name, facts in examined.facts() if facts.gpus}
    usual = most_common(drivers)
    for node, own in drivers.items():
        report = NodeReport(node, own or "not told")
        if own != usual:
            what = f"its driver is {own}, the others' {usual}"
            report.bad(what, f"on {node}: install driver {usual} and reboot")
        yield from report


@dataclass(frozen=True)
class DeviceSetting:
    """A column of nvidia-smi, and what sets it on device `index` as it is on `like`."""

    name: str
    field: str
    unit: str
    set_by: str


SETTINGS = (
    DeviceSetting("highest clock", "clock_max_mhz", " MHz", "`sudo nvidia-smi -i {index} -rgc`"),
    DeviceSetting(
        "application clock",
        "clock_set_mhz",
        " MHz",
        "`sudo nvidia-smi -i {index} -ac {like.memory_clock_set_mhz:.0f},{like.clock_set_mhz:.0f}`",
    ),
    DeviceSetting(
        "power limit", "power_limit_w", " W", "`sudo nvidia-smi -i {index} -pl {like.power_limit_w:.0f}`"
    ),
    DeviceSetting("ECC", "ecc", "", "`sudo nvidia-smi -i {index} -e {switch}`, then reboot"),
    DeviceSetting("MIG", "mig", "", "`sudo nvidia-smi -i {index} -mig {switch}`"),
)


@node_check("device settings", CheckArea.DEVICES)
def device_settings(examined: Examination) -> Iterator[NodeFinding]:
    usual = _usual([gpu for _, facts in examined.facts() for gpu in facts.gpus])
    for node, facts in examined.facts():
        if not facts.gpus:
            continue
        report = NodeReport(node, _settings_value(facts))
        for gpu in facts.gpus:
            for setting in SETTINGS:
                like = usual[gpu.name, setting.field]
                own, wanted = getattr(gpu, setting.field), getattr(like, setting.field)
                if own != wanted:
                    shown = f"{_shown(own, setting.unit)}, others {_shown(wanted, setting.unit)}"
                    what = f"GPU {gpu.index}: {setting.name} {shown}"
                    report.bad(what, f"on {node}: {_setting_fix(setting, gpu.index, like)}")
        if any(gpu.persistence == "Disabled" for gpu in facts.gpus):
            report.warn(
                "persistence mode is off: the driver is loaded anew for each process, and settings are lost",
                f"on {node}: `sudo nvidia-smi -pm 1`",
            )
        yield from report


def _usual(gpus: list[Gpu]) -> dict[tuple[str, str], Gpu]:
    """Of each model and setting, the first GPU that has what most of its model have."""
    by_name: dict[str, list[Gpu]] = {}
    for gpu in gpus:
        by_name.setdefault(gpu.name, []).append(gpu)
    usual_gpus = {}
    for name, alike in by_name.items():
        for setting in SETTINGS:
            value = Counter(getattr(gpu, setting.field) for gpu in alike).most_common(1)[0][0]
            usual_gpus[name, setting.field] = next(
                gpu for gpu in alike if getattr(gpu, setting.field) == value
            )
    return usual_gpus


def _setting_fix(setting: DeviceSetting, index: str, like: Gpu) -> str:
    wanted = getattr(like, setting.field)
    if wanted is None or (setting.field == "clock_set_mhz" and like.memory_clock_set_mhz is None):
        return f"compare `nvidia-smi -q -i {index}` with that of the others"
    return setting.set_by.format(index=index, like=like, switch=int(wanted == "Enabled"))


def _settings_value(facts: NodeFacts) -> str:
    gpu = facts.gpus[0]
    figures = ((gpu.clock_set_mhz or gpu.clock_max_mhz, " MHz"), (gpu.power_limit_w, " W"))
    return ", ".join(_shown(own, unit) for own, unit in figures if own is not None) or "not told"


def _shown(value: object, unit: str) -> str:
    if value is None:
        return "not told"
    return f"{value:g}{unit}" if isinstance(value, float) else f"{value}{unit}"


@node_check("device health", CheckArea.DEVICES)
def device_health(examined: Examination) -> Iterator[NodeFinding]:
    for node, facts in examined.facts():
        if facts.gpus:
            hottest = max(
                (gpu.temperature for gpu in facts.gpus if gpu.temperature is not None), default=None
            )
            report = NodeReport(node, f"{hottest:.0f} °C" if hottest is not None else "not told")
            for gpu in facts.gpus:
                _judge_health(report, gpu)
            yield from report


def _judge_health(report: NodeReport, gpu: Gpu) -> None:
    node, reasons = report.node, throttle_bits(gpu.throttle)
    slowed = [words for bit, words in THROTTLED.items() if reasons & bit]
    if slowed:
        report.bad(
            f"GPU {gpu.index} lowers its clocks: {', '.join(slowed)}",
            f"on {node}: look at its fans and power; `nvidia-smi -q -i {gpu.index} -d PERFORMANCE`",
            "throttled",
        )
    elif reasons & POWER_CAPPED:
        report.warn(
            f"GPU {gpu.index} is at its power limit",
            f"on {node}: `nvidia-smi -q -i {gpu.index} -d POWER` shows the limit and who draws",
            "at its power limit",
        )
    if gpu.ecc_errors:
        report.bad(
            f"GPU {gpu.index} has {gpu.ecc_errors:.0f} memory errors that ECC could not correct",
            f"on {node}: `sudo nvidia-smi -i {gpu.index} -r` or a reboot; if they return, replace it",
            "memory errors",
        )
    if gpu.temperature is not None and gpu.temperature > IDLE_TEMPERATURE:
        report.warn(
            f"GPU {gpu.index} has {gpu.temperature:.0f} °C before anything runs",
            f"on {node}: look at its fans and at what runs beside it",
        )
    if gpu.mig == "Enabled":
        report.warn(
            f"GPU {gpu.index} is cut into parts by MIG: a figure is not that of the whole device",
            f"on {node}: `sudo nvidia-smi -i {gpu.index} -mig 0`",
            "MIG",
        )


def throttle_bits(mask: str | None) -> int:
    """`0x0000000000000004`, as nvidia-smi says it; 0 where it does not."""
    try:
        return int(mask or "0", 16)
    except ValueError:
        return 0


@node_check("processes on devices", CheckArea.DEVICES)
def device_processes(examined: Examination) -> Iterator[NodeFinding]:
    for node, facts in examined.facts():
        if facts.gpus:
            report = NodeReport(node, "none")
            _judge_processes(report, facts)
            yield from report


def _judge_processes(report: NodeReport, facts: NodeFacts) -> None:
    node, index = report.node, {gpu.uuid: gpu.index for gpu in facts.gpus}
    for process in facts.gpu_processes:
        pid = f"{process.pid:.0f}" if process.pid is not None else "PID"
        memory = f", {process.memory_mib:.0f} MiB" if process.memory_mib is not None else ""
        report.bad(
            f"process {pid} ({process.name or 'name not told'}{memory}) is on "
            f"GPU {index.get(process.uuid, '?')}",
            f"on {node}: let it end, or `kill {pid}` if it is yours",
            f"{len(facts.gpu_processes)} at work",
        )
    for gpu in () if facts.gpu_processes else facts.gpus:
        if (gpu.memory_used_mib or 0.0) > IDLE_MEMORY_MIB:
            report.warn(
                f"GPU {gpu.index} has {gpu.memory_used_mib:.0f} MiB in use by no process that can be seen",
                f"on {node}: outside of the container, `sudo fuser -v /dev/nvidia{gpu.index}` names it",
                "memory held",
            )
