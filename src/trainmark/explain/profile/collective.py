"""What a collective moved, as Kineto notes it at `record_param_comms`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from trainmark.explain.profile.model import Operands

MESSAGE = "In msg nelems"


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
