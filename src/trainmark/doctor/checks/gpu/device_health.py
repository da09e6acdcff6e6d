"""Whether a GPU is throttled, hot, has lost memory cells or is cut into parts."""

from __future__ import annotations

from collections.abc import Iterator

from trainmark.doctor.examined import Examined
from trainmark.doctor.facts import Gpu
from trainmark.doctor.finding import About, Check, Finding, bad, ok, warn
from trainmark.doctor.limits import IDLE_TEMPERATURE, POWER_CAPPED, THROTTLED


def find(examined: Examined) -> Iterator[Finding]:
    for node, facts in examined.facts():
        if facts.gpus:
            hottest = max(
                (gpu.temperature for gpu in facts.gpus if gpu.temperature is not None), default=None
            )
            value = f"{hottest:.0f} °C" if hottest is not None else "not told"
            findings = [finding for gpu in facts.gpus for finding in _of(node, gpu, value)]
            yield from findings or [ok(node, value)]


def _of(node: str, gpu: Gpu, value: str) -> Iterator[Finding]:
    reasons = throttle_bits(gpu.throttle)
    slowed = [words for bit, words in THROTTLED.items() if reasons & bit]
    if slowed:
        yield bad(
            node,
            "throttled",
            f"GPU {gpu.index} lowers its clocks: {', '.join(slowed)}",
            f"on {node}: look at its fans and power; `nvidia-smi -q -i {gpu.index} -d PERFORMANCE`",
        )
    elif reasons & POWER_CAPPED:
        yield warn(
            node,
            "at its power limit",
            f"GPU {gpu.index} is at its power limit",
            f"on {node}: `nvidia-smi -q -i {gpu.index} -d POWER` shows the limit and who draws",
        )
    if gpu.ecc_errors:
        yield bad(
            node,
            "memory errors",
            f"GPU {gpu.index} has {gpu.ecc_errors:.0f} memory errors that ECC could not correct",
            f"on {node}: `sudo nvidia-smi -i {gpu.index} -r` or a reboot; if they return, replace it",
        )
    if gpu.temperature is not None and gpu.temperature > IDLE_TEMPERATURE:
        yield warn(
            node,
            value,
            f"GPU {gpu.index} has {gpu.temperature:.0f} °C before anything runs",
            f"on {node}: look at its fans and at what runs beside it",
        )
    if gpu.mig == "Enabled":
        yield warn(
            node,
            "MIG",
            f"GPU {gpu.index} is cut into parts by MIG: a figure is not that of the whole device",
            f"on {node}: `sudo nvidia-smi -i {gpu.index} -mig 0`",
        )


def throttle_bits(mask: str | None) -> int:
    """`0x0000000000000004`, as nvidia-smi says it; 0 where it does not."""
    try:
        return int(mask or "0", 16)
    except ValueError:
        return 0


CHECK = Check("device health", About.DEVICES, find)
