"""A class for every span of a profile."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from trainmark.explain.classes import COPY, OTHER
from trainmark.explain.classes.names import class_of, class_of_source, decides, is_optimiser_frame
from trainmark.explain.profile.autograd import ENGINE, forward_rows
from trainmark.explain.profile.enclosing import launching_rows, parents
from trainmark.explain.profile.model import ByRow, DeviceKind, HostKind, HostSpans, Profile, Source


def classes_of(profile: Profile, detail: Profile | None = None) -> list[str]:
    """Return the class of each row of `profile.spans`.

    Where the profile has no operators (a pass that recorded kernels alone) those of `detail`, the same steps
    recorded at length, tell: the n-th launch of a kernel in a step is the same in both.
    """
    own = own_classes(profile)
    if detail is None or detail is profile or _has_operators(profile) or profile.spans.sources:
        return own
    return _by_occurrence(profile, own, detail, own_classes(detail))


def own_classes(profile: Profile) -> list[str]:
    """Return the classes from the profile's own host rows."""
    spans = profile.spans
    callers = _callers(profile.host)
    decided: dict[tuple[int, Caller, str | None], str] = {}
    result = []
    rows = launching_rows(spans, profile.host).tolist()
    sources = sources_of(profile, rows)
    columns = zip(spans.name.tolist(), spans.kind.tolist(), rows, strict=True)
    for span, (name, kind, row) in enumerate(columns):
        if kind != DeviceKind.KERNEL:
            result.append(COPY)
            continue
        source = sources.get(span)
        key = name, callers[row] if row >= 0 else NOBODY, None if source is None else source.operator
        if key not in decided:
            decided[key] = _decide(spans.names[name], key[1], key[2])
        result.append(decided[key])
    return result


def sources_of(profile: Profile, rows: Sequence[int]) -> Mapping[int, Source]:
    """Return what compiled programs say of each span: its own source, else that of its row of the host."""
    own, of_host = profile.spans.sources, profile.host.sources
    if not isinstance(of_host, ByRow) or not len(rows):
        return own
    row = np.array(rows, np.int64)
    number = np.where(row >= 0, of_host.number[row.clip(min=0)], -1)
    if not isinstance(own, ByRow):
        return ByRow(of_host.table, number.astype(np.int32))
    both = np.where(own.number >= 0, own.number + len(of_host.table), number)
    return ByRow((*of_host.table, *own.table), both.astype(np.int32))


def _decide(name: str, caller: Caller, path: str | None) -> str:
    """Return the class of a span; a compiled program knows what it runs, unless it calls a library."""
    by_path = OTHER if path is None else class_of_source(name, path)
    if by_path != OTHER:
        return by_path
    # On a CPU a span is an operator itself.
    return class_of(name, None if caller.operator == name else caller.operator, caller.enclosing)


MOST_ENCLOSING = 32  # of a row; a composite operator calls few others


class Caller(NamedTuple):
    """What of all that encloses a host row can matter: few distinct ones occur in many rows."""

    operator: str | None  # the innermost
    enclosing: tuple[str, ...]  # composite operators and the optimizer's step


NOBODY = Caller(None, ())


def _callers(host: HostSpans) -> list[Caller]:
    """Return the caller of each row, the row itself included; a parent comes before its children.

    Backward has no composite operator around it: the function that autograd's engine calls takes those of its
    forward operator. What the engine launches beside that function adds up gradients.
    """
    parent = parents(host)
    forward = forward_rows(host, parent)
    matters = [decides(name) for name in host.names]
    is_update = [is_optimiser_frame(name) for name in host.names]
    is_engine = [name.startswith(ENGINE) for name in host.names]
    is_function = ["Backward" in name for name in host.names]
    result: list[Caller] = []
    known: dict[Caller, Caller] = {}
    columns = zip(host.name.tolist(), host.kind.tolist(), parent.tolist(), strict=True)
    names = host.name.tolist()
    for name, kind, above in columns:
        caller = result[above] if above >= 0 else NOBODY
        operator, enclosing = caller
        if above in forward and is_function[name] and is_engine[names[above]]:
            enclosing += result[forward[above]].enclosing
        if kind == HostKind.OPERATOR:
            operator = host.names[name]
        if is_update[name] if kind == HostKind.PYTHON else matters[name] and not is_engine[name]:
            enclosing += (host.names[name],)
        if (operator, enclosing) != caller:
            caller = Caller(operator, tuple(dict.fromkeys(enclosing))[:MOST_ENCLOSING])
        result.append(known.setdefault(caller, caller))
    return result


def _has_operators(profile: Profile) -> bool:
    return bool(np.any(profile.host.kind == HostKind.OPERATOR))


def step_of_spans(profile: Profile) -> npt.NDArray[np.int64]:
    """Return the index of the step that each span ends in; -1 before the first and after the last."""
    ends = np.array([step.end for step in profile.steps], np.int64)
    if not len(ends):
        return np.full(len(profile.spans), -1, np.int64)
    index = np.searchsorted(ends, profile.spans.end, side="left")
    inside = (profile.spans.end > profile.steps[0].start) & (index < len(ends))
    return np.where(inside, index, -1)


def _by_occurrence(profile: Profile, own: list[str], detail: Profile, detail_classes: list[str]) -> list[str]:
    """Replace what the names leave open by the class of the same launch in the other pass.

    Where a kernel has as many launches in both steps, the n-th is the n-th; else its usual class is taken.
    """
    orders: dict[str, dict[int, list[str]]] = {}
    usual: dict[str, Counter[str]] = {}
    for name, step, detail_class in zip(
        detail.spans.name.tolist(), step_of_spans(detail).tolist(), detail_classes, strict=True
    ):
        text = detail.spans.names[name]
        usual.setdefault(text, Counter())[detail_class] += 1
        if step >= 0:
            orders.setdefault(text, {}).setdefault(step, []).append(detail_class)
    typical = {name: _typical(list(by_step.values())) for name, by_step in orders.items()}
    steps = step_of_spans(profile).tolist()
    names = [profile.spans.names[name] for name in profile.spans.name.tolist()]
    launches = Counter(zip(names, steps, strict=True))
    seen: Counter[tuple[str, int]] = Counter()
    result = []
    for name, step, own_class, kind in zip(names, steps, own, profile.spans.kind.tolist(), strict=True):
        nth = seen[name, step]
        seen[name, step] += 1
        if kind != DeviceKind.KERNEL or name not in usual:
            result.append(own_class)
        elif step >= 0 and launches[name, step] == len(typical.get(name, ())):
            result.append(typical[name][nth])
        else:
            best = usual[name].most_common(1)[0][0]
            result.append(own_class if best == OTHER else best)
    return result


def _typical(sequences: list[list[str]]) -> list[str]:
    """Return the sequence that most steps have."""
    return list(Counter(map(tuple, sequences)).most_common(1)[0][0])
