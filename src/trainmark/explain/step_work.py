"""FLOP and bytes of one step by class: from operands, or as a workload declares them (CUDA graphs, XLA)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from trainmark.explain import convolutions, operator_cost, traffic
from trainmark.explain.kernel_classes import (
    BACKWARD_FUNCTION,
    CONVOLUTION,
    ELEMENTWISE,
    MATRIX_PRODUCT,
    OPTIMIZER,
    PRODUCT_CLASSES,
    REDUCTION,
    class_of_operator,
    sources_of,
    step_of_spans,
)
from trainmark.explain.nesting import from_outside, launching_rows, parents
from trainmark.explain.operator_cost import Formula, OperatorCost, Work
from trainmark.explain.profile import ByRow, DeviceKind, DeviceSpans, HostKind, Operands, Profile, SpanSource
from trainmark.workloads.declaration import Axes, Workload

STOCK = "stock"
# A model of convolutions: whose other products are fewer than this share of their FLOP.
FEW = 0.05


def of_case(
    workload: Workload, axes: Axes, samples: float, engine: str = STOCK, graph: bool = False
) -> dict[str, Work]:
    """Return the FLOP of one rank's step with so many samples; bytes are not declared.

    A family's own kernels compute 1x1 convolutions as matrix products too. Where operators are recorded, part
    of the FLOP is theirs and nobody can tell which: such a case has no declared FLOP by class.
    """
    if workload.flops_by_class is None:
        return {}
    declared = workload.flops_by_class(axes)
    if engine != STOCK and not graph and CONVOLUTION in declared:
        return {}
    return {name: Work(flop=flop * samples) for name, flop in declared.items()}


def with_convolutions(
    classes: Sequence[str], spans: DeviceSpans, declared: Mapping[str, Work]
) -> tuple[str, ...]:
    """Return the classes with the matrix products of a replayed graph as the convolutions that they are.

    1x1 convolutions are computed as matrix products, and a graph has no operators to tell them by. In a model
    that declares next to no other products nearly all of these are convolutions.
    """
    convolutions = declared[CONVOLUTION].flop or 0.0 if CONVOLUTION in declared else 0.0
    products = declared[MATRIX_PRODUCT].flop or 0.0 if MATRIX_PRODUCT in declared else 0.0
    if products >= FEW * convolutions:
        return tuple(classes)
    return tuple(
        CONVOLUTION if replayed and name == MATRIX_PRODUCT else name
        for name, replayed in zip(classes, spans.in_graph.tolist(), strict=True)
    )


def completed(by_operands: Mapping[str, Work], declared: Mapping[str, Work]) -> dict[str, Work]:
    """Return the work from operands, with declared FLOP where a class that has time has none."""
    result = dict(by_operands)
    for name, work in declared.items():
        if name in result and result[name].flop is None:
            result[name] = Work(work.flop, result[name].bytes, result[name].covered)
    return result


# Of a class's time, for its sums to be called its own.
NEARLY_ALL = 0.95
WRAPPER = re.compile(
    r"aten::(conv\dd|conv_transpose\dd|_?convolution|linear|matmul|einsum|scaled_dot_product_attention)"
)


def of_step(profile: Profile, classes: Sequence[str], list_element: int | None = None) -> dict[str, Work]:
    """Return the work of each class in one step, the mean over all steps.

    An operator counts once, in the class of the longest span that it launched: of nested ones the outermost
    that has a formula. `list_element` is the bytes of an element of what optimizers are given as lists, whose
    type profilers do not record; None leaves them uncounted.
    """
    counted = _counted(profile, classes, _Formulas(profile, list_element))
    steps = len(profile.steps)
    return {name: total.work(name, steps) for name, total in counted.items()} if steps else {}


class _Total:
    """Sums of one class over all steps."""

    def __init__(self) -> None:
        self.flop, self.bytes = 0, 0
        self.time, self.with_flop, self.with_bytes = 0, 0, 0

    def add(self, cost: OperatorCost) -> None:
        self.flop += cost.flop or 0
        self.bytes += cost.bytes or 0

    def add_source(self, source: SpanSource, lasting: int, is_first: bool, known: frozenset[str]) -> None:
        """Add what a compiled program says of a span; only the first of an instruction has its numbers.

        `known` are operators whose FLOP are: an instruction that calls a library has none.
        """
        if is_first:
            self.add(OperatorCost(source.flop, source.traffic))
        self.with_flop += lasting if source.operator in known else 0
        self.with_bytes += lasting

    def work(self, name: str, steps: int) -> Work:
        time = max(self.time, 1)
        flop = self.flop / steps if name in PRODUCT_CLASSES and self.with_flop >= NEARLY_ALL * time else None
        moved = self.bytes / steps if self.with_bytes and self.with_bytes >= NEARLY_ALL * time else None
        return Work(flop or None, moved, max(self.with_flop, self.with_bytes) / time)


def _counted(profile: Profile, classes: Sequence[str], formulas: _Formulas) -> dict[str, _Total]:
    spans = profile.spans
    rows = launching_rows(spans, profile.host).tolist()
    lasting = (spans.end - spans.start).tolist()
    is_kernel = (spans.kind == DeviceKind.KERNEL).tolist()
    inside = np.flatnonzero(step_of_spans(profile) >= 0).tolist()
    totals: dict[str, _Total] = {name: _Total() for name in sorted({classes[span] for span in inside})}
    sources = sources_of(profile, rows)
    with_bytes, with_flop = _counted_operators(sources)
    from_sources: set[int] = set()
    launched: dict[int, dict[str, int]] = {}
    calling: list[tuple[int, str, int]] = []
    for span in inside:
        name = classes[span]
        totals[name].time += lasting[span]
        source = sources.get(span)
        if source is not None and source.operator in with_bytes:
            # On a CPU the pieces of one row have one source.
            row = rows[span] if rows[span] in profile.host.sources else -1 - span
            totals[name].add_source(source, lasting[span], row not in from_sources, with_flop)
            from_sources.add(row)
            continue
        if not is_kernel[span]:
            cost: OperatorCost | None = _moved(spans.names[int(spans.name[span])], int(spans.bytes[span]))
            if cost is not None:
                totals[name].add(cost)
        else:
            row = formulas.row(rows[span], name)
            cost = None if row is None else formulas.cost(row)
            if row is None:
                calling.append((rows[span], name, lasting[span]))
            else:
                by_class = launched.setdefault(row, {})
                by_class[name] = by_class.get(name, 0) + lasting[span]
        if cost is not None:
            totals[name].with_flop += lasting[span] if cost.flop is not None else 0
            totals[name].with_bytes += lasting[span] if cost.bytes is not None else 0
    if profile.device == "cpu":
        # An operator that only calls counted ones does no work of its own, nor does autograd's engine. One
        # that calls others beside a product of its own, without a formula, leaves its class uncounted.
        callers = formulas.callers(launched)
        for row, name, time in calling:
            calls = row in callers and (name not in PRODUCT_CLASSES or formulas.is_wrapper(row))
            if calls or formulas.is_autograd(row):
                totals[name].time -= time
    for row, by_class in launched.items():
        row_cost = formulas.cost(row)
        if row_cost is not None:
            totals[_class_of_row(by_class, row_cost)].add(row_cost)
    return totals


def _counted_operators(sources: Mapping[int, SpanSource]) -> tuple[frozenset[str], frozenset[str]]:
    """Return the operators of compiled programs whose bytes are known, and those whose FLOP are too."""
    distinct = set(sources.table) if isinstance(sources, ByRow) else set(sources.values())
    with_bytes = {source.operator for source in distinct if source.traffic is not None}
    unknown = {source.operator for source in distinct if source.traffic is not None and source.flop is None}
    return frozenset(with_bytes), frozenset(with_bytes - unknown)


def _class_of_row(by_class: Mapping[str, int], cost: OperatorCost) -> str:
    """Return the class of an operator's work: of a product that of its kernels, else the longest."""
    names = [name for name in by_class if name in PRODUCT_CLASSES] if cost.flop else []
    return max(names or by_class, key=lambda name: by_class[name])


def _moved(name: str, size: int) -> OperatorCost | None:
    """Return what a copy or memset moves in the device's memory: both ways where it stays there."""
    if not size:
        return None
    return OperatorCost(None, 2 * size if "DtoD" in name or "D2D" in name else size)


class _Around(NamedTuple):
    """Host rows at a row or around it, -1 without one.

    The outermost operator with a formula, the innermost that wraps one, the outermost of those of the
    innermost's class, and the innermost operator.
    """

    counted: int
    wrapper: int
    alike: int
    operator: int


class _Formulas:
    """The formula of each host row, and what it gives, once a row."""

    def __init__(self, profile: Profile, list_element: int | None) -> None:
        self.host, self.list_element = profile.host, list_element
        self.parent = parents(profile.host)
        self.is_operator = (profile.host.kind == HostKind.OPERATOR).tolist()
        self.names = profile.host.names
        self.name = profile.host.name.tolist()
        results = convolutions.seen_results(self._operands_of(convolutions.BACKWARD))
        with_flop: dict[str, Formula] = {
            **operator_cost.PRODUCTS,
            **operator_cost.ATTENTION,
            **{name: convolutions.forward(places, results) for name, places in convolutions.FORWARD.items()},
            convolutions.BACKWARD: convolutions.backward,
        }
        self.formulas = {**with_flop, **traffic.TRAFFIC}
        self.wrappers: dict[str, Formula] = {
            **operator_cost.PRODUCT_WRAPPERS,
            **operator_cost.ATTENTION_WRAPPERS,
            **{name: convolutions.forward(places, results) for name, places in convolutions.WRAPPERS.items()},
        }
        self.product_callers = self.callers(self._rows_of({*with_flop, *self.wrappers}))
        self.chosen: dict[tuple[int, str], int | None] = {}
        self.by_row: dict[int, Formula] = {}
        self.costs: dict[int, OperatorCost | None] = {}
        self.around: dict[int, _Around] = {-1: _Around(-1, -1, -1, -1)}

    def callers(self, rows: Iterable[int]) -> set[int]:
        outer: set[int] = set()
        for row in rows:
            above = int(self.parent[row])
            while above >= 0 and above not in outer:
                outer.add(above)
                above = int(self.parent[above])
        return outer

    def is_wrapper(self, row: int) -> bool:
        return WRAPPER.fullmatch(self.names[self.name[row]]) is not None

    def is_autograd(self, row: int) -> bool:
        name = self.names[self.name[row]]
        return "autograd::" in name or BACKWARD_FUNCTION.fullmatch(name) is not None

    def _rows_of(self, names: set[str]) -> list[int]:
        numbers = [index for index, text in enumerate(self.names) if text in names]
        is_row = np.isin(self.host.name, numbers) & (self.host.kind == HostKind.OPERATOR)
        return np.flatnonzero(is_row).tolist()

    def _operands_of(self, name: str) -> list[Operands]:
        return [self.host.operands[row] for row in self._rows_of({name}) if row in self.host.operands]

    def cost(self, row: int) -> OperatorCost | None:
        if row not in self.costs:
            operands = self.host.operands.get(row)
            self.costs[row] = None if operands is None else self.by_row[row](operands)
        return self.costs[row]

    def row(self, launching: int, span_class: str) -> int | None:
        """Return the row whose work a span is part of, None where nothing around it has a formula."""
        key = launching, span_class
        if key not in self.chosen:
            self.chosen[key] = self._find(launching, span_class)
        return self.chosen[key]

    def _find(self, launching: int, span_class: str) -> int | None:
        """Look for the outermost operator with a formula.

        Without one take the innermost that usually calls such an operator and here did the work itself.
        """
        around = from_outside(launching, self.parent, self.around, self._inside)
        formula: Formula | None = None
        for row, formula in (
            (around.counted, self._formula(around.counted)),
            (around.wrapper, self.wrappers.get(self._name(around.wrapper))),
            (around.alike, _by_class(self._name(around.alike), span_class)),
        ):
            if row >= 0 and formula is not None:
                self.by_row.setdefault(row, formula)
                return row
        return None

    def _name(self, row: int) -> str:
        return self.names[self.name[row]] if row >= 0 else ""

    def _formula(self, row: int) -> Formula | None:
        return (self.formulas.get(self._name(row)) or self._by_form(row)) if row >= 0 else None

    def _inside(self, row: int, outer: _Around) -> _Around:
        """Return what is around a row from what is around the row that encloses it."""
        if not self.is_operator[row]:
            return outer
        name, has_operands = self._name(row), row in self.host.operands
        counted, wrapper = outer.counted, outer.wrapper
        if counted < 0 and has_operands and self._formula(row) is not None:
            counted = row
        if has_operands and name in self.wrappers and row not in self.product_callers:
            wrapper = row
        alike = row if has_operands else -1
        above = self._name(outer.operator)
        if has_operands and above.startswith("aten::") and outer.operator in self.host.operands:
            # Of nested operators of one class the outermost: relu_, not its clamp_min_.
            alike = outer.alike if class_of_operator(above) == class_of_operator(name) else row
        return _Around(counted, wrapper, alike, row)

    def _by_form(self, row: int) -> Formula | None:
        """Return the formula of Inductor's kernels and of operators on lists of tensors, by their names."""
        name = self.names[self.name[row]]
        if name in traffic.VIEWS:
            return traffic.nothing
        if name.startswith("triton_tem_"):
            return operator_cost.template
        if name.startswith("triton_"):
            return traffic.all_tensors
        if "_foreach_" in name or name.startswith("aten::_fused_"):
            return traffic.listed(name, self.list_element)
        return None


def _by_class(name: str, span_class: str) -> Formula | None:
    """Return the formula that all operators of a class share."""
    if not name.startswith("aten::"):
        return None
    if span_class in (ELEMENTWISE, OPTIMIZER):
        return traffic.elementwise(name)
    return traffic.reduction if span_class == REDUCTION else None
