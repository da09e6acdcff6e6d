"""What cannot be, whatever the events say: counts below one, a time to come, a device of another machine."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from typing import Any

from trainmark.measure.key import Key

COUNTS = ("nodes", "devices_per_node", "batch_per_device", "threads")
LARGEST_COUNT = 2**31 - 1
# Clocks differ, and time zones are mistaken.
AHEAD_SECONDS = 86_400.0
CLOCK = "by the clock of the machine that checks it"
NO_MODEL = "cpu"


def impossible_counts(key: Key) -> Iterator[tuple[str, str]]:
    """Yield each count of a key that cannot be, with what is wrong with it."""
    for name in COUNTS:
        value = getattr(key, name)
        if value is not None and not 1 <= value <= LARGEST_COUNT:
            yield f"key.{name}", f"is {value}, which cannot be"
    if key.devices > LARGEST_COUNT:
        yield "key", f"has {key.devices} devices, which cannot be"


def impossible_time(value: float, now: float | None = None) -> str | None:
    """Return what is wrong with a start more than a day ahead: which of the two clocks, nobody can tell."""
    now = time.time() if now is None else now
    if value <= now + AHEAD_SECONDS:
        return None
    return f"is {_moment(value)}, but it is {_moment(now)} {CLOCK}; one of the two clocks is wrong"


def foreign_device(key: Key, environment: Mapping[str, Any]) -> str | None:
    """Return what is wrong with a device that the environment does not have; None where that is not known.

    Not for a run over a cluster: its environment is that of the machine that started it, maybe without GPUs.
    """
    host, devices = environment.get("host"), environment.get("devices")
    cpu = host.get("cpu") if isinstance(host, Mapping) else None
    gpus = devices.get("gpus") if isinstance(devices, Mapping) else None
    if key.device is None or not isinstance(cpu, Mapping) or not isinstance(gpus, list):
        return None
    known = [gpu.get("name") for gpu in gpus if isinstance(gpu, Mapping)]
    known.append(cpu.get("model") or NO_MODEL)
    if key.device in (*known, NO_MODEL) or None in known:
        return None
    return f"is {key.device}, but {', '.join(dict.fromkeys(map(str, known)))} by environment.json"


def _moment(value: float) -> str:
    try:
        return time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime(value))
    except (OverflowError, ValueError, OSError):
        return f"{value:g} s"
