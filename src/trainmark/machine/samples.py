"""Samples of a node's processors, from /proc and /sys, and of its GPUs, from nvidia-smi.

Part of the agent: standard library only.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from trainmark.events.schema import DeviceSample, throttle_names
from trainmark.machine.nvidia_smi import Query, QueryLoop, number
from trainmark.machine.process_tree import TICKS_PER_SECOND, ProcessTree, own_memory, visible_indices
from trainmark.machine.reading import file_number, file_text, memory_used

CPU_SENSORS = ("coretemp", "k10temp", "zenpower")
# Asking a sleeping core for its clock wakes it, so a few speak for all.
CLOCKS_READ = 4


@dataclass(frozen=True)
class CpuClock:
    """Processor seconds of the whole host since it started."""

    total: float
    idle: float


class CpuSampler:
    """Reads the host; each row covers the time since the one before. `prefix` names the node."""

    def __init__(self, tree: ProcessTree, root: Path = Path("/"), prefix: str = "") -> None:
        self._tree = tree
        self._root = root
        self._device = f"{prefix}cpu"
        self._energy = _EnergyMeter(root)
        self._sensors = _temperature_files(root)
        policies = sorted(root.glob("sys/devices/system/cpu/cpufreq/policy*"))
        self._policies = policies[:: max(1, len(policies) // CLOCKS_READ)][:CLOCKS_READ]
        self._clock = host_clock(root)
        self._ours = self._our_seconds()

    def sample(self) -> DeviceSample:
        """The row for now; brings the tree up to date on the way."""
        clock, ours = host_clock(self._root), self._our_seconds()
        before, self._clock = self._clock, clock
        ours_before, self._ours = self._ours, ours
        our_delta = None if ours is None or ours_before is None else ours - ours_before
        return DeviceSample(
            device=self._device,
            mono=time.monotonic(),
            wall=time.time(),
            utilisation=busy_share(before, clock),
            memory_bytes=memory_used(self._root),
            power_watts=self._energy.watts(),
            temperature_c=max(filter(None, map(_celsius, self._sensors)), default=None),
            clock_mhz=_mean_mhz(self._policies, "scaling_cur_freq"),
            clock_max_mhz=_mean_mhz(self._policies, "cpuinfo_max_freq"),
            foreign_share=foreign_share(before, clock, our_delta),
            own_memory_bytes=self._tree.resident_bytes(),
        )

    def _our_seconds(self) -> float | None:
        """The trial's processes and this one, which watches them."""
        try:
            self._tree.refresh()
        except OSError:
            return None
        watcher = os.getpid()
        extra = 0.0 if watcher in self._tree.members else self._tree.own_seconds(watcher)
        return self._tree.seconds() + extra


def busy_share(before: CpuClock, after: CpuClock) -> float | None:
    """Share of the host's processor time that was not idle; None where no time passed."""
    total = after.total - before.total
    return _clipped_share(total - (after.idle - before.idle), total)


def foreign_share(before: CpuClock, after: CpuClock, our_seconds: float | None) -> float | None:
    """Share of the host's processor time that others took, other virtual machines ("steal") included.

    None where our own is not known: it runs backwards when a process dies that none of ours reaps.
    """
    if our_seconds is None or our_seconds < 0:
        return None
    total = after.total - before.total
    return _clipped_share(total - (after.idle - before.idle) - our_seconds, total)


def _clipped_share(part: float, whole: float) -> float | None:
    return min(1.0, max(0.0, part / whole)) if whole > 0 else None


def host_clock(root: Path = Path("/")) -> CpuClock:
    """Read the kernel's counters: user, nice, system, idle, iowait, irq, softirq, steal.

    The guests' time that follows them is counted in `user` and `nice` already.
    """
    words = (file_text(root / "proc/stat") or "").partition("\n")[0].split()
    times = [int(word) / TICKS_PER_SECOND for word in words[1:9]]
    return CpuClock(sum(times), sum(times[3:5]))


def _temperature_files(root: Path) -> list[Path]:
    chips = [
        chip
        for chip in sorted(root.glob("sys/class/hwmon/hwmon*"))
        if file_text(chip / "name") in CPU_SENSORS
    ]
    return [chip / "temp1_input" for chip in chips]


def _celsius(path: Path) -> float | None:
    thousandths = file_number(path)
    return None if thousandths is None else thousandths / 1000


def _mean_mhz(policies: list[Path], name: str) -> float | None:
    clocks = [khz / 1000 for policy in policies if (khz := file_number(policy / name))]
    return sum(clocks) / len(clocks) if clocks else None


class _EnergyMeter:
    """Watts of all processor packages since the last reading, from the kernel's energy counters (RAPL)."""

    def __init__(self, root: Path) -> None:
        domains = sorted(root.glob("sys/class/powercap/intel-rapl:[0-9]*"))
        self._packages = [d for d in domains if (file_text(d / "name") or "").startswith("package")]
        self._ranges = [file_number(package / "max_energy_range_uj") or 0 for package in self._packages]
        self._before = self._reading()

    def watts(self) -> float | None:
        (then, before), self._before = self._before, self._reading()
        now, after = self._before
        if not before or not after or now <= then:
            return None
        spent = [
            # A counter that has gone round starts again from 0.
            end - start if end >= start else end - start + limit
            for start, end, limit in zip(before, after, self._ranges)  # noqa: B905 (Python 3.9)
        ]
        return sum(spent) / 1e6 / (now - then)

    def _reading(self) -> tuple[float, list[int]]:
        energies = [file_number(package / "energy_uj") for package in self._packages]
        known = [energy for energy in energies if energy is not None]
        # A package that does not tell would make the sum a lie.
        return time.monotonic(), known if len(known) == len(energies) else []


SAMPLED = "index uuid utilization memory_used_mib power_w temperature clock_mhz clock_max_mhz throttle"
# A process that is not listed for so long has left the GPU; it is asked for twice a second.
GONE_SECONDS = 2.0


class SmiSampler:
    """Samples the first `count` GPUs that CUDA would show to a program with these variables.

    Two nvidia-smi run beside the ranks, for the GPUs and for the processes on them; `before_exec` is called
    in each before it starts.
    """

    def __init__(
        self,
        count: int,
        variables: Mapping[str, str],
        tree: ProcessTree,
        prefix: str = "",
        before_exec: Callable[[], None] | None = None,
    ) -> None:
        self._count = count
        self._visible = variables.get("CUDA_VISIBLE_DEVICES")
        self._tree = tree
        self._prefix = prefix
        self._gpus = QueryLoop(Query("gpu", SAMPLED), before_exec)
        self._processes = QueryLoop(Query("compute-apps", "uuid pid memory_mib"), before_exec)
        tree.watchers.update(loop.pid for loop in (self._gpus, self._processes) if loop.pid is not None)
        self._uuids: dict[int, str] = {}
        self._used_before: dict[int, int | None] = {}
        # A GPU and a process on it → when it was last listed, and its bytes.
        self._listed: dict[tuple[str, int], tuple[float, int | None]] = {}

    def sample(self) -> list[DeviceSample]:
        """Return the latest row of each GPU since the call before; the tree is as it was last refreshed."""
        self._list_processes()
        rows = {int(row["index"]): row for row in self._gpus.rows() if row.get("index", "").isdecimal()}
        self._uuids.update((index, row.get("uuid", "")) for index, row in rows.items())
        used = visible_indices(self._visible, self._uuids)[: self._count]
        return [self._sample(index, rows[index]) for index in used if index in rows]

    def close(self) -> None:
        self._gpus.close()
        self._processes.close()

    def _list_processes(self) -> None:
        now = time.monotonic()
        for row in self._processes.rows():
            if row.get("pid", "").isdecimal():
                self._listed[row.get("uuid", ""), int(row["pid"])] = now, mebibytes(row.get("memory_mib"))
        self._listed = {key: last for key, last in self._listed.items() if now - last[0] < GONE_SECONDS}

    def _sample(self, index: int, row: Mapping[str, str]) -> DeviceSample:
        own_uuid = self._uuids[index]
        on_gpu = {pid: size for (uuid, pid), (_, size) in self._listed.items() if uuid == own_uuid}
        used = mebibytes(row.get("memory_used_mib"))
        before = self._used_before.setdefault(index, used)
        own = own_memory(on_gpu, self._tree, used, before)
        return gpu_sample(row, f"{self._prefix}cuda:{index}", self._tree.count_others(on_gpu), own)


def mebibytes(text: str | None) -> int | None:
    """Return the memory that a row tells, in bytes."""
    count = number(text)
    return None if count is None else int(count) << 20


def gpu_sample(
    row: Mapping[str, str], device: str, foreign_processes: int = 0, own_memory_bytes: int | None = None
) -> DeviceSample:
    """Return the row in the units of an event; what a card does not tell is None."""
    percent = number(row.get("utilization"))
    bits = None
    with contextlib.suppress(ValueError):
        bits = int(row.get("throttle", ""), 16)
    return DeviceSample(
        device=device,
        mono=time.monotonic(),
        wall=time.time(),
        utilisation=None if percent is None else percent / 100,
        memory_bytes=mebibytes(row.get("memory_used_mib")),
        power_watts=number(row.get("power_w")),
        temperature_c=number(row.get("temperature")),
        clock_mhz=number(row.get("clock_mhz")),
        clock_max_mhz=number(row.get("clock_max_mhz")),
        throttle=throttle_names(bits),
        foreign_processes=foreign_processes,
        own_memory_bytes=own_memory_bytes,
    )
