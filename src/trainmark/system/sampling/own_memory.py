"""How much of a GPU's memory belongs to the trial's own processes."""

from __future__ import annotations

from collections.abc import Mapping

from trainmark.system.sampling.process_tree import ProcessTree

# A CUDA context alone takes more; what comes and goes below this is the driver's own.
LEAST_BYTES = 1 << 26


def own_memory(
    processes: Mapping[int, int | None], tree: ProcessTree, used: int | None, before: int | None
) -> int | None:
    """Return the bytes that processes of the tree use on a GPU, None where nothing tells.

    `processes` are those on the GPU with the bytes of each, where the driver tells them. Inside a container
    they have the host's numbers, or are not listed at all: then it is what the GPU has in use (`used`) beyond
    what it had when the trial had not yet come to it (`before`).
    """
    ours = [process_bytes for pid, process_bytes in processes.items() if pid in tree.members]
    known = [process_bytes for process_bytes in ours if process_bytes is not None]
    if ours and len(known) == len(ours):
        return sum(known)
    if not ours and processes and tree.count_others(processes) == len(processes):
        return 0  # all are others', and seen from here
    if used is None or before is None:
        return None
    return used - before if used - before >= LEAST_BYTES else 0
