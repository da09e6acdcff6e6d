"""Whether the GPUs' clocks, power limits and modes are set alike, within a node and between nodes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from trainmark.doctor.examined import Examined
from trainmark.doctor.facts import Facts, Gpu
from trainmark.doctor.finding import About, Check, Finding, bad, ok, warn


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


def find(examined: Examined) -> Iterator[Finding]:
    usual = _usual([gpu for _, facts in examined.facts() for gpu in facts.gpus])
    for node, facts in examined.facts():
        if not facts.gpus:
            continue
        value = _value(facts)
        findings = [*_deviations(node, facts, usual, value), *_persistence(node, facts, value)]
        yield from findings or [ok(node, value)]


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


def _deviations(
    node: str, facts: Facts, usual: Mapping[tuple[str, str], Gpu], value: str
) -> Iterator[Finding]:
    for gpu in facts.gpus:
        for setting in SETTINGS:
            like = usual[gpu.name, setting.field]
            own, wanted = getattr(gpu, setting.field), getattr(like, setting.field)
            if own != wanted:
                what = f"{setting.name} {_shown(own, setting.unit)}, others {_shown(wanted, setting.unit)}"
                fix = _fix(setting, gpu.index, like)
                yield bad(node, value, f"GPU {gpu.index}: {what}", f"on {node}: {fix}")


def _fix(setting: DeviceSetting, index: str, like: Gpu) -> str:
    wanted = getattr(like, setting.field)
    if wanted is None or (setting.field == "clock_set_mhz" and like.memory_clock_set_mhz is None):
        return f"compare `nvidia-smi -q -i {index}` with that of the others"
    return setting.set_by.format(index=index, like=like, switch=int(wanted == "Enabled"))


def _persistence(node: str, facts: Facts, value: str) -> Iterator[Finding]:
    if any(gpu.persistence == "Disabled" for gpu in facts.gpus):
        yield warn(
            node,
            value,
            "persistence mode is off: the driver is loaded anew for each process, and settings are lost",
            f"on {node}: `sudo nvidia-smi -pm 1`",
        )


def _value(facts: Facts) -> str:
    gpu = facts.gpus[0]
    figures = ((gpu.clock_set_mhz or gpu.clock_max_mhz, " MHz"), (gpu.power_limit_w, " W"))
    return ", ".join(_shown(own, unit) for own, unit in figures if own is not None) or "not told"


def _shown(value: object, unit: str) -> str:
    if value is None:
        return "not told"
    return f"{value:g}{unit}" if isinstance(value, float) else f"{value}{unit}"


CHECK = Check("device settings", About.DEVICES, find)
