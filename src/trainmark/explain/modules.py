"""Device time by module of the model, forward and backward, compiled programs among them."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from trainmark.explain.explanation import ModuleTime
from trainmark.explain.kernel_classes import is_optimizer, sources_of, step_of_spans
from trainmark.explain.nesting import backward_rows, forward_rows, from_outside, launching_rows, parents
from trainmark.explain.profile import HostKind, Profile

MOST_PATHS = 1 << 16
# A function that is compiled on its own is no module, whatever its name.
COMPILED = re.compile(r"\bp?jit\([^()]*\)")
SEPARATORS = re.compile(r"[/()]")
GRADIENTS = re.compile(r"(?:^|/)(?:gradient_tape|gradients)/")  # of TensorFlow
# Transformations of JAX and calls of either framework, which stand among the scopes.
TRANSFORMATIONS = frozenset(
    (
        *("transpose", "jvp", "vmap", "pmap", "jit", "pjit", "xmap", "shard_map", "linearize"),
        *("remat", "remat2", "checkpoint", "rematted_computation", "custom_vjp", "custom_jvp"),
        *("custom_vjp_call", "custom_jvp_call", "closed_call", "core_call"),
        *("while", "body", "cond", "branch", "scan", "StatefulPartitionedCall", "PartitionedCall"),
    )
)


class ModuleScope(NamedTuple):
    """Modules from outside in, none where the program names none; `backward` in a gradient."""

    modules: tuple[str, ...]
    backward: bool


@lru_cache(MOST_PATHS)
def scope_of(path: str) -> ModuleScope:
    """Return the modules around an instruction; the optimizer's step is none."""
    scope = path.rpartition("/")[0]
    tape = GRADIENTS.search(path)
    if tape:
        # The operator whose gradient it is follows its modules.
        scope = scope[tape.end() :].rpartition("/")[0]
    if is_optimizer(scope):
        return ModuleScope((), False)
    words = SEPARATORS.split(COMPILED.sub("", scope))
    # Subscripts of a product ("BTNH,BSNH->BNTS") are scopes too.
    modules = (word for word in words if word and word not in TRANSFORMATIONS and "->" not in word)
    return ModuleScope(tuple(modules), tape is not None or "transpose(" in scope)


PREFIX = "nn.Module: "
SEPARATOR = " / "
NO_SCOPE = ModuleScope((), False)
INSTANCE = re.compile(r"_\d+$")
MOST_MODELS = 6  # of one type
MOST_DEPTH = 64  # modules in one another; what lies deeper counts for the last of them


def modules(detail: Profile, names: Mapping[str, str] | None = None) -> tuple[ModuleTime, ...]:
    """Return the modules by path, the longest first; empty where no frame and no scope names one.

    A path has the innermost module last ("GPT2_0 / Block_3 / Linear_1") and its own time alone, without
    that of modules in it. What no module launched, as the optimizer's step, is left out. `names` are those of
    variables: where several models are of one type, these tell them apart, else numbers do.
    """
    spans = detail.spans
    rows = launching_rows(spans, detail.host)
    path_of = _path_of_spans(detail, rows)
    if path_of is None:
        return ()
    inside = step_of_spans(detail) >= 0
    times: dict[str, list[int]] = {}
    launched: dict[str, set[int]] = {}
    lasting = (spans.end - spans.start).tolist()
    for span in np.flatnonzero(inside).tolist():
        path, backward = path_of(span)
        if path:
            record = times.setdefault(path, [0, 0])
            record[backward] += lasting[span]
            # On a CPU the pieces of one operator are one launch.
            is_piece = detail.device == "cpu" and rows[span] >= 0
            launched.setdefault(path, set()).add(-1 - int(rows[span]) if is_piece else span)
    told = _told_apart({path.partition(SEPARATOR)[0] for path in times}, names or {})
    return _ordered(
        ModuleTime(_renamed(path, told), forward, backward, len(launched[path]))
        for path, (forward, backward) in times.items()
    )


def _told_apart(models: Collection[str], names: Mapping[str, str]) -> dict[str, str]:
    """Return new names of models that share their type; a program that calls many layers itself has none."""
    alike: dict[str, list[str]] = {}
    for model in sorted(models, key=lambda model: (len(model), model)):
        alike.setdefault(INSTANCE.sub("", model), []).append(model)
    return {
        model: f"{names[model]} ({kind})" if model in names else f"{kind} #{number}"
        for kind, several in alike.items()
        if 1 < len(several) <= MOST_MODELS
        for number, model in enumerate(several, 1)
    }


def _renamed(path: str, told: Mapping[str, str]) -> str:
    model, separator, rest = path.partition(SEPARATOR)
    return f"{told.get(model, model)}{separator}{rest}"


def _path_of_spans(detail: Profile, rows: npt.NDArray[np.int32]) -> Callable[[int], tuple[str, bool]] | None:
    """Return what gives a span's path ("" without one) and whether it is backward; None without modules."""
    paths = _Paths(detail)
    if paths.any:
        return lambda span: paths.of(int(rows[span])) if rows[span] >= 0 else ("", False)
    sources = sources_of(detail, rows.tolist())
    if not sources:
        return None

    def of_source(span: int) -> tuple[str, bool]:
        source = sources.get(span)
        scope = NO_SCOPE if source is None else scope_of(source.operator)
        return SEPARATOR.join(scope.modules), scope.backward

    return of_source


def by_path(times: Iterable[ModuleTime], depth: int) -> tuple[ModuleTime, ...]:
    """Return the times of like modules together: "GPT2 / Block / Linear" of all blocks, down to a depth."""
    return _summed(
        times, lambda name: SEPARATOR.join(INSTANCE.sub("", part) for part in name.split(SEPARATOR)[:depth])
    )


def _summed(times: Iterable[ModuleTime], group: Callable[[str], str]) -> tuple[ModuleTime, ...]:
    sums: dict[str, list[int]] = {}
    for time in times:
        record = sums.setdefault(group(time.name), [0, 0, 0])
        for index, number in enumerate((time.forward, time.backward, time.launches)):
            record[index] += number
    return _ordered(ModuleTime(name, *record) for name, record in sums.items())


def _ordered(times: Iterable[ModuleTime]) -> tuple[ModuleTime, ...]:
    return tuple(sorted(times, key=lambda time: (-time.forward - time.backward, time.name)))


class _Paths:
    """The module path of host rows, each found once."""

    def __init__(self, profile: Profile) -> None:
        host = profile.host
        self.frames = {
            index: name.removeprefix(PREFIX)
            for index, name in enumerate(host.names)
            if name.startswith(PREFIX)
        }
        is_frame = np.isin(host.name, list(self.frames)) & (host.kind == HostKind.PYTHON)
        self.any = bool(is_frame.any())
        if self.any:
            self.host, self.is_frame, self.parent = host, is_frame, parents(host)
            self.forward = forward_rows(host, self.parent)
            self.backward = backward_rows(host, self.parent)
            self.around: dict[int, _Around] = {-1: _Around((), -1)}

    def of(self, row: int) -> tuple[str, bool]:
        """Return the path, empty without one, and whether the row is part of backward."""
        around, backward = self._around(row), bool(self.backward[row])
        # What is recomputed in backward has the frames of its module around it already.
        if backward and around.engine >= 0 and not around.frames:
            around = self._around(self.forward[around.engine])
        return SEPARATOR.join(around.frames), backward

    def _around(self, row: int) -> _Around:
        return from_outside(row, self.parent, self.around, self._inside)

    def _inside(self, row: int, outer: _Around) -> _Around:
        frames, engine = outer
        if self.is_frame[row] and len(frames) < MOST_DEPTH:
            frames = (*frames, self.frames[int(self.host.name[row])])
        return _Around(frames, row if row in self.forward else engine)


class _Around(NamedTuple):
    """The modules around a host row from outside in; the innermost call of autograd's engine, -1 without."""

    frames: tuple[str, ...]
    engine: int
