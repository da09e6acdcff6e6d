"""The collectives of a profile: when each ran, in which step, what it moved."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from trainmark.explain.classes import COMMUNICATION
from trainmark.explain.profile.collective import collective_rows
from trainmark.explain.profile.model import HostKind, Operands, Profile

KINDS = {
    "all_reduce": re.compile(r"all_?reduce", re.IGNORECASE),
    "reduce_scatter": re.compile(r"reduce_?scatter", re.IGNORECASE),
    "all_gather": re.compile(r"all_?gather", re.IGNORECASE),
    "all_to_all": re.compile(r"all_?to_?all", re.IGNORECASE),
    "broadcast": re.compile(r"broadcast", re.IGNORECASE),
    "send_recv": re.compile(r"send|recv", re.IGNORECASE),
}
ELEMENT_BYTES = {
    **dict.fromkeys(("float", "int", "uint32"), 4),
    **dict.fromkeys(("double", "long", "long int", "complexfloat", "complex<float>"), 8),
    **dict.fromkeys(("half", "bfloat16", "short", "short int"), 2),
    **dict.fromkeys(
        ("byte", "char", "bool", "unsigned char", "signed char", "float8_e4m3fn", "float8_e5m2"), 1
    ),
}


@dataclass(frozen=True)
class Collective:
    """One call on one rank. `step` is the step's index, `count` which of its kind in the step."""

    kind: str
    step: int
    count: int
    start: int
    end: int
    bytes: int | None
    ranks: int | None

    @property
    def key(self) -> tuple[int, str, int]:
        return self.step, self.kind, self.count


def collectives(profile: Profile, classes: Sequence[str]) -> list[Collective]:
    """Return the collectives that begin inside a step, by start."""
    host, spans = profile.host, profile.spans
    rows: list[tuple[int, int, str, Operands | None]] = [
        (int(host.start[row]), int(host.end[row]), host.names[host.name[row]], host.operands.get(row))
        for row in collective_rows(host)
    ]
    # On a CPU the operator only hands the collective to its thread.
    if not rows:
        messages = _messages(profile)
        rows = [
            (
                int(spans.start[i]),
                int(spans.end[i]),
                spans.names[spans.name[i]],
                messages.get(int(spans.launch[i])),
            )
            for i, kernel_class in enumerate(classes)
            if kernel_class == COMMUNICATION
        ]
    starts = np.array([step.start for step in profile.steps], np.int64)
    seen: Counter[tuple[int, str]] = Counter()
    result = []
    for start, end, name, operands in sorted(rows, key=lambda row: row[:3]):
        step = int(np.searchsorted(starts, start, side="right")) - 1
        if step < 0 or start >= profile.steps[step].end:
            continue
        kind = kind_of(operands.values[0] if operands and operands.values and operands.values[0] else name)
        size = message_bytes(operands)
        group = operands.values[1] if operands and len(operands.values) == 2 else ""
        ranks = int(group) if group else None
        result.append(Collective(kind, step, seen[step, kind], start, end, size, ranks))
        seen[step, kind] += 1
    return result


def kind_of(name: str) -> str:
    return next((kind for kind, pattern in KINDS.items() if pattern.search(name)), "collective")


def message_bytes(operands: Operands | None) -> int | None:
    """Return the larger of what is taken and given: the whole message in nccl-tests' sense."""
    if operands is None:
        return None
    sizes = []
    for shape, element in zip(operands.shapes, operands.types, strict=False):
        width = ELEMENT_BYTES.get(element.lower().removeprefix("c10::"))
        if shape is not None and width is not None:
            sizes.append(int(np.prod(shape, dtype=np.int64)) * width)
    return max(sizes, default=0) or None


def _messages(profile: Profile) -> dict[int, Operands]:
    """Return what `record_param_comms` around each launch says, by correlation id."""
    host = profile.host
    notes = [row for row in host.operands if host.names[host.name[row]] == "record_param_comms"]
    launches = np.flatnonzero((host.kind == HostKind.RUNTIME) & (host.launch >= 0))
    starts, threads = host.start[launches], host.thread[launches]
    result: dict[int, Operands] = {}
    for row in sorted(notes):
        first, last = np.searchsorted(starts, [host.start[row], host.end[row]])
        own = launches[first:last][threads[first:last] == host.thread[row]]
        result.update({int(host.launch[call]): host.operands[row] for call in own})
    return result
