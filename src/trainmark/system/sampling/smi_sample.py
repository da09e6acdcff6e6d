"""One row about each GPU of a node that has no NVML for Python, as nvidia-smi tells it."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Mapping

from trainmark.events.schema import DeviceSample, throttle_names
from trainmark.system.gpu.nvidia_smi import THROTTLE, Query, QueryLoop, number
from trainmark.system.gpu.visible_devices import visible_indices
from trainmark.system.sampling.own_memory import own_memory
from trainmark.system.sampling.process_tree import ProcessTree

GPU_FIELDS = {
    "index": "index",
    "uuid": "uuid",
    "utilization.gpu": "percent",
    "memory.used": "mebibytes",
    "power.draw": "watts",
    "temperature.gpu": "celsius",
    "clocks.sm": "mhz",
    "clocks.max.sm": "mhz_max",
    **THROTTLE,
}
PROCESS_FIELDS = {"gpu_uuid": "uuid", "pid": "pid", "used_memory": "mebibytes"}
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
        self._gpus = QueryLoop(Query("gpu", GPU_FIELDS), before_exec)
        self._processes = QueryLoop(Query("compute-apps", PROCESS_FIELDS), before_exec)
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
                self._listed[row.get("uuid", ""), int(row["pid"])] = now, mebibytes(row)
        self._listed = {key: last for key, last in self._listed.items() if now - last[0] < GONE_SECONDS}

    def _sample(self, index: int, row: Mapping[str, str]) -> DeviceSample:
        own_uuid = self._uuids[index]
        on_gpu = {pid: size for (uuid, pid), (_, size) in self._listed.items() if uuid == own_uuid}
        used = mebibytes(row)
        before = self._used_before.setdefault(index, used)
        own = own_memory(on_gpu, self._tree, used, before)
        return gpu_sample(row, f"{self._prefix}cuda:{index}", self._tree.count_others(on_gpu), own)


def mebibytes(row: Mapping[str, str]) -> int | None:
    """Return the memory that a row tells, in bytes."""
    count = number(row.get("mebibytes"))
    return None if count is None else int(count) << 20


def gpu_sample(
    row: Mapping[str, str], device: str, foreign_processes: int = 0, own_memory_bytes: int | None = None
) -> DeviceSample:
    """Return the row in the units of an event; what a card does not tell is None."""
    percent = number(row.get("percent"))
    bits = None
    with contextlib.suppress(ValueError):
        bits = int(row.get("throttle", ""), 16)
    return DeviceSample(
        device=device,
        mono=time.monotonic(),
        wall=time.time(),
        utilisation=None if percent is None else percent / 100,
        memory_bytes=mebibytes(row),
        power_watts=number(row.get("watts")),
        temperature_c=number(row.get("celsius")),
        clock_mhz=number(row.get("mhz")),
        clock_max_mhz=number(row.get("mhz_max")),
        throttle=throttle_names(bits),
        foreign_processes=foreign_processes,
        own_memory_bytes=own_memory_bytes,
    )
