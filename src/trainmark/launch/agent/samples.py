"""What the processors and GPUs of a node say of themselves while ranks run on it, as events."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Mapping

from trainmark.events.schema import DeviceSample
from trainmark.launch.agent.processes import become_rank
from trainmark.machine.process_tree import ProcessTree
from trainmark.machine.samples import CpuSampler, SmiSampler

INTERVAL_SECONDS = 0.5


class Samples:
    """Samples the processors, and the first `gpus` GPUs that the ranks' variables leave, twice a second."""

    def __init__(self, node: str, gpus: int = 0, variables: Mapping[str, str] = os.environ) -> None:
        self.due = time.monotonic() + INTERVAL_SECONDS
        tree, prefix = ProcessTree(os.getpid()), f"{node}/"
        self.cpu = CpuSampler(tree, prefix=prefix)
        self.gpus = SmiSampler(gpus, variables, tree, prefix, become_rank) if gpus else None

    def look(self) -> bytes:
        """Return the lines that are due; empty between two looks."""
        now = time.monotonic()
        if now < self.due:
            return b""
        self.due = now + INTERVAL_SECONDS
        try:
            samples = [self.cpu.sample(), *(self.gpus.sample() if self.gpus else [])]
        except (OSError, ValueError):  # a node of which nothing can be read still trains
            return b""
        return b"".join(map(encode, samples))


def encode(sample: DeviceSample) -> bytes:
    """Return the event as a line; what is not known is left out."""
    known = {name: value for name, value in vars(sample).items() if value is not None}
    return json.dumps({"event": "device_sample", **known}).encode() + b"\n"
