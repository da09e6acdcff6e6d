"""Which GPUs each node has: the same on all, and none that has lost its driver."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from trainmark.doctor.examined import Examined, most_common
from trainmark.doctor.facts import Facts
from trainmark.doctor.finding import About, Check, Finding, bad, ok, warn


def find(examined: Examined) -> Iterator[Finding]:
    kinds = examined.each(kinds_of)
    usual = most_common(kinds)
    for node, facts in examined.facts():
        own = kinds[node]
        if facts.gpu_trouble:
            yield bad(
                node,
                "not told",
                f"nvidia-smi fails: {facts.gpu_trouble}",
                f"on {node}: `sudo dmesg | grep -i nvrm` says why; a reboot mends most of it",
            )
        elif own != usual:
            yield bad(
                node,
                own,
                f"it has {own}, the others {usual}",
                f"on {node}: `nvidia-smi -L` names them; a GPU that fell off the bus comes back by a reboot; "
                f"else leave it out with --exclude {node}",
            )
        elif facts.gpu_cards and not facts.gpus:
            yield warn(
                node,
                own,
                f"there are {facts.gpu_cards} NVIDIA GPUs on the bus, and no nvidia-smi",
                f"on {node}: install the driver, or start the container with `--gpus all`",
            )
        else:
            yield ok(node, own)


def kinds_of(facts: Facts) -> str:
    counts = Counter(gpu.name for gpu in facts.gpus)
    return ", ".join(f"{count} × {name}" for name, count in sorted(counts.items())) or "no GPU"


CHECK = Check("devices", About.DEVICES, find)
