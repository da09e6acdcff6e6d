"""A class for every span of a profile."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from trainmark.explain.classes import COPY, OTHER
from trainmark.explain.classes.names import class_of, is_optimiser
from trainmark.explain.profile.autograd import ENGINE, forward_rows
from trainmark.explain.profile.enclosing import ancestors, launching_rows, parents
from trainmark.explain.profile.model import DeviceKind, HostKind, Profile


def classes_of(profile: Profile, detail: Profile | None = None) -> list[str]:
    """Return the class of each row of `profile.spans`.

    Where the profile has no operators (a pass that recorded kernels alone) those of `detail`, the same steps
    recorded at length, tell: the n-th launch of a kernel in a step is the same in both.
    """
    own = own_classes(profile)
    if detail is None or detail is profile or _has_operators(profile):
        return own
    return _by_occurrence(profile, own, detail, own_classes(detail))


def own_classes(profile: Profile) -> list[str]:
    """Return the classes from the profile's own host rows."""
    spans, host = profile.spans, profile.host
    rows = launching_rows(spans, host)
    context = _Context(profile)
    decided: dict[tuple[int, int], str] = {}
    result = []
    columns = zip(spans.name.tolist(), spans.kind.tolist(), rows.tolist(), strict=True)
    for name, kind, row in columns:
        if kind != DeviceKind.KERNEL:
            result.append(COPY)
            continue
        key = name, row
        if key not in decided:
            decided[key] = context.class_of(spans.names[name], row)
        result.append(decided[key])
    return result


class _Context:
    """What encloses host rows, looked up once a row."""

    def __init__(self, profile: Profile) -> None:
        self.host = profile.host
        self.parent = parents(profile.host)
        self.forward = forward_rows(profile.host, self.parent)
        self.names = [profile.host.names[name] for name in profile.host.name.tolist()]
        self.kinds = profile.host.kind.tolist()
        self.seen: dict[int, tuple[str | None, tuple[str, ...]]] = {}

    def class_of(self, name: str, row: int) -> str:
        if row < 0:
            return class_of(name)
        if row not in self.seen:
            self.seen[row] = self._enclosing(row)
        operator, enclosing = self.seen[row]
        return class_of(name, operator if operator != name else None, enclosing)

    def _enclosing(self, row: int) -> tuple[str | None, tuple[str, ...]]:
        """Return the innermost operator, and all that encloses the row; backward also that of its forward."""
        chain = list(ancestors(row, self.parent))
        for inner, outer in pairwise(tuple(chain)):
            if self.names[outer].startswith(ENGINE):
                # What the engine adds itself, beside the function, accumulates gradients.
                if "Backward" not in self.names[inner]:
                    chain.remove(outer)
                elif outer in self.forward:
                    chain += ancestors(self.forward[outer], self.parent)
                break
        operators = [outer for outer in chain if self.kinds[outer] == HostKind.OPERATOR]
        names = [
            self.names[outer]
            for outer in chain
            if self.kinds[outer] in (HostKind.OPERATOR, HostKind.ANNOTATION)
            or (self.kinds[outer] == HostKind.PYTHON and is_optimiser(self.names[outer]))
        ]
        return (self.names[operators[0]] if operators else None), tuple(dict.fromkeys(names))


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
