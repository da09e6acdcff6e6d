"""What a collective moved, as Kineto notes it at `record_param_comms`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import numpy as np

from trainmark.explain.profile.model import HostKind, HostSpans, Operands

MESSAGE = "In msg nelems"
# Rows of the threads in which a CPU backend carries a collective out; nothing else records it.
HOST_ROW = re.compile(r"(gloo|mpi|ucc):\w+")


def collective_operands(arguments: Mapping[str, Any]) -> Operands | None:
    """Return the elements taken and given as two shapes, with their type; values: collective, group size.

    None where the row is no transfer (a group that is made, a barrier) or has no numbers.
    """
    counts = arguments.get(MESSAGE), arguments.get("Out msg nelems")
    taken, given = (count if type(count) is int and 0 < count < 1 << 62 else 0 for count in counts)
    if not taken and not given:
        return None
    dtype, name, size = (arguments.get(key) for key in ("dtype", "Collective name", "Group size"))
    element = dtype if type(dtype) is str else ""
    ranks = str(size) if type(size) is int and size > 0 else ""
    return Operands(((taken,), (given,)), (element, element), (name if type(name) is str else "", ranks))


def collective_rows(host: HostSpans) -> list[int]:
    """Return the rows in which a thread of a CPU backend carries out a collective."""
    names = [index for index, name in enumerate(host.names) if HOST_ROW.fullmatch(name)]
    rows: list[int] = np.flatnonzero(np.isin(host.name, names) & (host.kind == HostKind.ANNOTATION)).tolist()
    return rows
