"""Kernel classes: by a kernel's name (kernel_classes.yaml) and what launched it; one for every span."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from trainmark.explain.nesting import ENGINE, forward_rows, launching_rows, parents
from trainmark.explain.profile import ByRow, DeviceKind, HostKind, HostSpans, Profile, SpanSource

CONVOLUTION, MATRIX_PRODUCT, ATTENTION = "convolution", "matrix product", "attention"
NORMALIZATION, ELEMENTWISE, REDUCTION = "normalisation", "elementwise", "reduction"
OPTIMIZER, COPY, COMMUNICATION, OTHER = "optimiser", "copy", "communication", "other"
PRODUCT_CLASSES = (CONVOLUTION, MATRIX_PRODUCT, ATTENTION)
CLASSES = (
    *PRODUCT_CLASSES,
    *(NORMALIZATION, ELEMENTWISE, REDUCTION, OPTIMIZER, COPY, COMMUNICATION, OTHER),
)


NAMES = Path(__file__).with_name("kernel_classes.yaml")
MOST_NAMES = 1 << 16  # whose class is remembered
# What an operator may say of a kernel whose name is of the class: cuDNN computes convolutions with plain
# GEMMs, norms are made of elementwise kernels and reductions. A copy stays a copy wherever it is.
REFINED = {
    OTHER: frozenset(CLASSES) - {OTHER},
    ELEMENTWISE: frozenset({NORMALIZATION, ATTENTION, OPTIMIZER, REDUCTION, COPY}),
    REDUCTION: frozenset({NORMALIZATION, ATTENTION, OPTIMIZER}),
    MATRIX_PRODUCT: frozenset({CONVOLUTION, ATTENTION}),
}
UPDATED = frozenset({ELEMENTWISE, REDUCTION, OTHER})
BACKWARD_FUNCTION = re.compile(r"\w+Backward\d*")
ONEDNN = re.compile(r"^_Mkl(Native)?(?=[A-Z])")  # TensorFlow on x86-64: `_MklNativeConv2D`
OPERATOR_PREFIXES = ("aten::", "autograd::", "c10d::", "mkldnn", "gloo:", "nccl:")


def class_of(name: str, operator: str | None = None, enclosing: tuple[str, ...] = ()) -> str:
    """Return one of CLASSES for a kernel, or on a CPU for an operator.

    `operator` is the innermost one that launched it, `enclosing` are the annotations and operators around
    that, in any order; those that `decides` denies need not be among them.
    """
    kernel_class = class_of_name(name)
    if operator is not None:
        by_operator = class_of_operator(operator)
        if by_operator in REFINED.get(kernel_class, ()):
            kernel_class = by_operator
    for outer in (operator or name, *enclosing):
        composite = _class_in("composites", outer)
        if composite in REFINED.get(kernel_class, ()):
            kernel_class = composite
    if kernel_class in UPDATED and any(is_optimizer(outer) for outer in enclosing):
        return OPTIMIZER
    return kernel_class


@lru_cache(MOST_NAMES)
def class_of_name(name: str) -> str:
    """Return the class that a name alone tells."""
    own = _names()["own_kernels"].get(name)
    if own is not None:
        return str(own)
    if is_inductor(name):
        return _class_in("inductor", name)
    if name.startswith(OPERATOR_PREFIXES) or BACKWARD_FUNCTION.fullmatch(name):
        return class_of_operator(name)
    tables = (("kernels", without_parameters(name)), ("xla", name), ("operators", name))
    classes = (_class_in(table, text) for table, text in tables)
    return next((kernel_class for kernel_class in classes if kernel_class != OTHER), OTHER)


@lru_cache(MOST_NAMES)
def class_of_operator(name: str) -> str:
    """Return the class of a host operator: ATen's, autograd's, or the path that JAX gives."""
    if is_inductor(name):
        return _class_in("inductor", name)
    if "/" in name and "::" not in name:
        return class_of_path(name)
    by_operator = _class_in("operators", name)
    return by_operator if by_operator != OTHER or "::" in name else _class_in("xla", name)


@lru_cache(MOST_NAMES)
def class_of_path(path: str) -> str:
    """Return the class of an instruction of XLA by its scope and what it computes.

    "jit(step)/jvp(Block)/layer_norm/add" is part of a norm, "…/layer_norm/dot_general" is a product.
    """
    scope, _, leaf = path.rpartition("/")
    return _in_scope(_class_in("xla", leaf), scope)


@lru_cache(MOST_NAMES)
def class_of_source(name: str, path: str) -> str:
    """Return the class of a span that has a path: JAX's, or that of an operator in TensorFlow's graph.

    TensorFlow's operator has a type beside its name, which anybody may choose: on a GPU the path is
    "gradient_tape/MatMul_3/MatMul:MatMul", on a CPU the span is named by the type.
    """
    scope, _, leaf = path.rpartition("/")
    by_type = _class_in("tensorflow", ONEDNN.sub("", leaf.partition(":")[2] or name))
    return class_of_path(path) if by_type == OTHER else _in_scope(by_type, scope)


def _in_scope(kernel_class: str, scope: str) -> str:
    """Return the class of what a scope of the program contains."""
    by_scope = _class_in("scopes", scope)
    if by_scope in REFINED.get(kernel_class, ()):
        return by_scope
    return OPTIMIZER if kernel_class in (ELEMENTWISE, REDUCTION) and is_optimizer(scope) else kernel_class


@lru_cache(MOST_NAMES)
def is_optimizer(name: str) -> bool:
    """Say whether an annotation or a Python frame is the optimizer's step."""
    pattern: re.Pattern[str] = _names()["optimiser_annotations"]
    return pattern.search(name) is not None or is_optimizer_frame(name)


@lru_cache(MOST_NAMES)
def is_optimizer_frame(name: str) -> bool:
    pattern: re.Pattern[str] = _names()["optimiser_frames"]
    return pattern.search(name) is not None


def is_inductor(name: str) -> bool:
    """Say whether PyTorch's compiler generated it, for a GPU or a CPU."""
    return name.startswith("triton_") or "cpp_fused_" in name


def is_compiled(name: str) -> bool:
    """Say whether PyTorch's compiler made it, or called what it made."""
    return is_inductor(name) or name.startswith(("Torch-Compiled Region", "## Call CompiledFxGraph"))


def decides_class(name: str) -> bool:
    """Say whether a name around a kernel can decide its class: a composite operator, the optimizer's step."""
    return is_optimizer(name) or _class_in("composites", name) != OTHER


def without_parameters(name: str) -> str:
    """Return a kernel's name without the types that it takes, which follow its template arguments.

    A functor among the template arguments says what an elementwise kernel does, and stays.
    """
    start = name.find(">(")
    return name if start < 0 else name[: start + 1]


@lru_cache(MOST_NAMES)
def _class_in(table: str, name: str) -> str:
    rules = _names()[table]
    return next((kernel_class for pattern, kernel_class in rules if pattern.search(name)), OTHER)


@cache
def _names() -> dict[str, Any]:
    import yaml

    written = yaml.safe_load(NAMES.read_text(encoding="utf-8"))
    own = written.pop("own_kernels")
    optimiser = {key: _any_of(written.pop(key)) for key in ("optimiser_annotations", "optimiser_frames")}
    tables: dict[str, Any] = {
        table: [(_any_of(patterns), name) for rule in rules for name, patterns in rule.items()]
        for table, rules in written.items()
    }
    tables["own_kernels"] = {kernel: name for name, kernels in own.items() for kernel in kernels}
    return {**tables, **optimiser}


def _any_of(patterns: list[str]) -> re.Pattern[str]:
    return re.compile("|".join(patterns), re.IGNORECASE)


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


def sources_of(profile: Profile, rows: Sequence[int]) -> Mapping[int, SpanSource]:
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
    matters = [decides_class(name) for name in host.names]
    is_update = [is_optimizer_frame(name) for name in host.names]
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
