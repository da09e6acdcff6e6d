"""Autograd's sequence numbers: which forward operator a backward function belongs to."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from trainmark.explain.profile.model import HostKind, HostSpans

ENGINE = "autograd::engine::evaluate_function"


def forward_rows(host: HostSpans, parent: npt.NDArray[np.int32]) -> dict[int, int]:
    """Return the forward operator's row by the row of the backward function that autograd's engine called.

    Several forward rows carry one number: those that made no node pass it on to the next. The node's maker is
    the last of them.
    """
    numbered = np.flatnonzero((host.kind == HostKind.OPERATOR) & (host.sequence >= 0))
    engine_names = {index for index, name in enumerate(host.names) if name.startswith(ENGINE)}
    if not len(numbered) or not engine_names:
        return {}
    in_backward = backward_rows(host, parent, engine_names)
    makers: dict[int, int] = {}
    result: dict[int, int] = {}
    for row in numbered.tolist():
        number = int(host.sequence[row])
        if not in_backward[row]:
            makers[number] = _outermost(row, number, makers, host)
        elif int(host.name[row]) in engine_names and number in makers:
            result[row] = makers[number]
    return result


def _outermost(row: int, number: int, makers: dict[int, int], host: HostSpans) -> int:
    """Return the row itself, unless the number's last row encloses it: then that one made the node."""
    before = makers.get(number)
    if before is not None and host.thread[before] == host.thread[row] and host.end[before] >= host.end[row]:
        return before
    return row


def backward_rows(
    host: HostSpans, parent: npt.NDArray[np.int32], engine_names: set[int] | None = None
) -> npt.NDArray[np.bool_]:
    """Say of each row whether autograd's engine encloses it or is it. A parent comes before its children."""
    if engine_names is None:
        engine_names = {index for index, name in enumerate(host.names) if name.startswith(ENGINE)}
    result: npt.NDArray[np.bool_] = np.isin(host.name, list(engine_names)) & (host.kind == HostKind.OPERATOR)
    if not result.any():
        return result
    inside: list[bool] = result.tolist()
    for row, above in enumerate(parent.tolist()):
        if above >= 0 and inside[above]:
            inside[row] = True
    return np.array(inside, bool)
