"""What the processors and GPUs of a node say of themselves while ranks run on it, as events."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import time
from pathlib import Path
from typing import Any

from trainmark.events.throttle import throttle_names
from trainmark.launch.agent.processes import become_rank, descendants

INTERVAL_SECONDS = 0.5
TICKS = os.sysconf("SC_CLK_TCK")
# What nvidia-smi is asked → the field of the event, and what one of its units is there.
GPU_FIELDS = {
    "utilization.gpu": ("utilisation", 0.01),
    "memory.used": ("memory_bytes", 1 << 20),
    "power.draw": ("power_watts", 1.0),
    "temperature.gpu": ("temperature_c", 1.0),
    "clocks.sm": ("clock_mhz", 1.0),
    "clocks.max.sm": ("clock_max_mhz", 1.0),
}
THROTTLE = "clocks_throttle_reasons.active"


class Samples:
    """Looks twice a second; GPUs through one nvidia-smi that runs beside the ranks."""

    def __init__(self, node: str) -> None:
        self.node = node
        self.due = time.monotonic() + INTERVAL_SECONDS
        self.before = host_clock()
        self.ours = our_seconds()
        self.smi = gpu_process()
        self.unread = b""

    def look(self) -> bytes:
        """The lines that are due; empty between two looks."""
        now = time.monotonic()
        if now < self.due:
            return b""
        self.due = now + INTERVAL_SECONDS
        rows = [self.processors(), *self.gpus()]
        stamp = {"event": "device_sample", "mono": now, "wall": time.time()}
        return b"".join(json.dumps({**stamp, **row}).encode() + b"\n" for row in rows)

    def processors(self) -> dict[str, Any]:
        clock, ours = host_clock(), our_seconds()
        (total, idle), own = self.before, self.ours
        self.before, self.ours = clock, ours
        passed, busy, spent = clock[0] - total, clock[0] - total - (clock[1] - idle), ours - own
        row: dict[str, Any] = {"device": f"{self.node}/cpu", "memory_bytes": memory_used()}
        if passed > 0:
            row["utilisation"] = min(1.0, max(0.0, busy / passed))
            # It runs backwards where a process died that none of ours reaps.
            if spent >= 0:
                row["foreign_share"] = min(1.0, max(0.0, (busy - spent) / passed))
        return row

    def gpus(self) -> list[dict[str, Any]]:
        """The last row of each since the last look."""
        if self.smi is None or self.smi.stdout is None:
            return []
        with contextlib.suppress(BlockingIOError):
            self.unread += os.read(self.smi.stdout.fileno(), 1 << 16)
        *lines, self.unread = self.unread.split(b"\n")
        rows = (gpu_row(line.decode("utf-8", "replace"), self.node) for line in lines)
        return list({row["device"]: row for row in rows if row}.values())


def gpu_process() -> subprocess.Popen[bytes] | None:
    """None where there is no driver to ask."""
    smi = shutil.which("nvidia-smi")
    if smi is None:
        return None
    asked = ",".join(["index", *GPU_FIELDS, THROTTLE])
    command = [smi, f"--query-gpu={asked}", "--format=csv,noheader,nounits", "--loop-ms=500"]
    try:
        found = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, preexec_fn=become_rank
        )
    except OSError:
        return None
    assert found.stdout is not None
    os.set_blocking(found.stdout.fileno(), False)
    return found


def gpu_row(line: str, node: str) -> dict[str, Any] | None:
    """`0, 97, 41000, 690.5, 61, 1980, 1980, 0x0000000000000000`; what a card does not tell is left out."""
    words = [word.strip() for word in line.split(",")]
    if len(words) != len(GPU_FIELDS) + 2 or not words[0].isdigit():
        return None
    row: dict[str, Any] = {"device": f"{node}/cuda:{words[0]}"}
    for word, (name, unit) in zip(words[1:-1], GPU_FIELDS.values()):  # noqa: B905  Python 3.9 has no strict
        with contextlib.suppress(ValueError):
            value = float(word) * unit
            row[name] = int(value) if name == "memory_bytes" else value
    with contextlib.suppress(ValueError):
        row["throttle"] = list(throttle_names(int(words[-1], 16)))
    return row


def host_clock() -> tuple[float, float]:
    """Processor seconds of the whole node since it started, and those of them that were idle."""
    with contextlib.suppress(OSError, ValueError):
        first = Path("/proc/stat").read_text().splitlines()[0].split()[1:9]
        times = [int(each) / TICKS for each in first]  # a guest's time is counted in `user` already
        return sum(times), times[3] + times[4]
    return 0.0, 0.0


def our_seconds() -> float:
    """Of the agent and all below it, those that have ended included."""
    return sum(map(_seconds, [os.getpid(), *descendants(os.getpid())]))


def memory_used() -> int | None:
    with contextlib.suppress(OSError, ValueError, KeyError):
        rows = (line.split() for line in Path("/proc/meminfo").read_text().splitlines())
        known = {row[0]: int(row[1]) * 1024 for row in rows if len(row) > 1}
        return known["MemTotal:"] - known["MemAvailable:"]
    return None


def _seconds(pid: int) -> float:
    with contextlib.suppress(OSError, ValueError, IndexError):
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return sum(int(each) for each in fields[11:15]) / TICKS
    return 0.0
