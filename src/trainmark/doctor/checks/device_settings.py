"""Whether the GPUs' clocks, power limits and modes are set alike, within a node and between nodes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from trainmark.doctor.examined import Examined
from trainmark.doctor.facts import Facts, Gpu
from trainmark.doctor.finding import About, Check, Finding, bad, ok, warn


@dataclass(frozen=True)
class Setting:
    """A column of nvidia-smi, and what sets it on device `index` as it is on `like`."""

    name: str
    field: str
    unit: str
    set_by: str


SETTINGS = (
    Setting("highest clock", "clock_max_mhz", " MHz", "`sudo nvidia-smi -i {index} -rgc`"),
    Setting(
        "application clock",
        "clock_set_mhz",
        " MHz",
        "`sudo nvidia-smi -i {index} -ac {like.memory_clock_set_mhz:.0f},{like.clock_set_mhz:.0f}`",
    ),
    Setting(
        "power limit", "power_limit_w", " W", "`sudo nvidia-smi -i {index} -pl {like.power_limit_w:.0f}`"
    ),
    Setting("ECC", "ecc", "", "`sudo nvidia-smi -i {index} -e {switch}`, then reboot"),
    Setting("MIG", "mig", "", "`sudo nvidia-smi -i {index} -mig {switch}`"),
)


def find(examined: Examined) -> Iterator[Finding]:
    all_gpus = [gpu for _, facts in examined.facts() for gpu in facts.gpus]
    for node, facts in examined.facts():
        if not facts.gpus:
            continue
        value = _value(facts)
        found = [*_deviations(node, facts, all_gpus, value), *_persistence(node, facts, value)]
        yield from found or [ok(node, value)]


def _deviations(node: str, facts: Facts, all_gpus: list[Gpu], value: str) -> Iterator[Finding]:
    for gpu in facts.gpus:
        alike = [other for other in all_gpus if other.name == gpu.name]
        for setting in SETTINGS:
            own = getattr(gpu, setting.field)
            usual = Counter(getattr(other, setting.field) for other in alike).most_common(1)[0][0]
            if own != usual:
                like = next(other for other in alike if getattr(other, setting.field) == usual)
                what = f"{setting.name} {_shown(own, setting.unit)}, others {_shown(usual, setting.unit)}"
                fix = _fix(setting, gpu.index, like)
                yield bad(node, value, f"GPU {gpu.index}: {what}", f"on {node}: {fix}")


def _fix(setting: Setting, index: str, like: Gpu) -> str:
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
    told = ((gpu.clock_set_mhz or gpu.clock_max_mhz, " MHz"), (gpu.power_limit_w, " W"))
    return ", ".join(_shown(own, unit) for own, unit in told if own is not None) or "not told"


def _shown(value: object, unit: str) -> str:
    if value is None:
        return "not told"
    return f"{value:g}{unit}" if isinstance(value, float) else f"{value}{unit}"


CHECK = Check("device settings", About.DEVICES, find)
