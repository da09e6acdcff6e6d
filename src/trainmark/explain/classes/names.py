"""The class of one kernel or operator: by its name (names.yaml), refined by what launched it."""

from __future__ import annotations

import re
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

from trainmark.explain.classes import (
    ATTENTION,
    CLASSES,
    CONVOLUTION,
    COPY,
    ELEMENTWISE,
    MATRIX_PRODUCT,
    NORMALISATION,
    OPTIMISER,
    OTHER,
    REDUCTION,
)

NAMES = Path(__file__).with_name("names.yaml")
MOST_NAMES = 1 << 16  # whose class is remembered
# What an operator may say of a kernel whose name is of the class: cuDNN computes convolutions with plain
# GEMMs, norms are made of elementwise kernels and reductions. A copy stays a copy wherever it is.
REFINED = {
    OTHER: frozenset(CLASSES) - {OTHER},
    ELEMENTWISE: frozenset({NORMALISATION, ATTENTION, OPTIMISER, REDUCTION, COPY}),
    REDUCTION: frozenset({NORMALISATION, ATTENTION, OPTIMISER}),
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
    if kernel_class in UPDATED and any(is_optimiser(outer) for outer in enclosing):
        return OPTIMISER
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
    return OPTIMISER if kernel_class in (ELEMENTWISE, REDUCTION) and is_optimiser(scope) else kernel_class


@lru_cache(MOST_NAMES)
def is_optimiser(name: str) -> bool:
    """Say whether an annotation or a Python frame is the optimizer's step."""
    pattern: re.Pattern[str] = _names()["optimiser_annotations"]
    return pattern.search(name) is not None or is_optimiser_frame(name)


@lru_cache(MOST_NAMES)
def is_optimiser_frame(name: str) -> bool:
    pattern: re.Pattern[str] = _names()["optimiser_frames"]
    return pattern.search(name) is not None


def is_inductor(name: str) -> bool:
    """Say whether PyTorch's compiler generated it, for a GPU or a CPU."""
    return name.startswith("triton_") or "cpp_fused_" in name


def is_compiled(name: str) -> bool:
    """Say whether PyTorch's compiler made it, or called what it made."""
    return is_inductor(name) or name.startswith(("Torch-Compiled Region", "## Call CompiledFxGraph"))


def decides(name: str) -> bool:
    """Say whether a name around a kernel can decide its class: a composite operator, the optimizer's step."""
    return is_optimiser(name) or _class_in("composites", name) != OTHER


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
