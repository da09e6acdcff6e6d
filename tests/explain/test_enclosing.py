"""Rows in one another: the right one encloses each, at a cost that depth does not change."""

from __future__ import annotations

import random

import numpy as np
from builders_step import Row, Span, profile_of

from trainmark.explain.modules import MOST_DEPTH, modules
from trainmark.explain.nesting import ROUNDING, from_outside, parents
from trainmark.explain.profile import Collector, HostKind, Operands
from trainmark.explain.step_work import of_step

DEEP = 20_000


def host_of(rows):
    collector = Collector()
    for start, end in rows:
        collector.host("row", start, end)
    return collector.host_spans()


def innermost(host, row):
    """The row that began last of those still running that hold this one, by looking at all of them."""
    start, end = int(host.start[row]), int(host.end[row])
    around = (
        outer
        for outer in reversed(range(row))
        if host.end[outer] > start and end <= int(host.end[outer]) + ROUNDING
    )
    return next(around, -1)


def test_the_row_around_each_is_the_last_begun_of_those_that_hold_it():
    rng = random.Random(7)
    for _ in range(150):
        starts = [rng.randrange(0, 40_000) for _ in range(40)]
        host = host_of([(start, start + rng.choice((5, 900, 3_000, 30_000))) for start in starts])
        assert parents(host).tolist() == [innermost(host, row) for row in range(len(host))]


def test_each_row_is_looked_at_once_however_deep_it_lies():
    looked = []

    def inside(row: int, outer: int) -> int:
        looked.append(row)
        return outer + 1

    parent = np.arange(-1, DEEP - 1, dtype=np.int32)
    known = {-1: 0}
    depths = [from_outside(row, parent, known, inside) for row in (DEEP - 1, DEEP // 2, DEEP - 1)]
    assert depths == [DEEP, DEEP // 2 + 1, DEEP]
    assert len(looked) == DEEP


class CountingOperands(dict):
    looks = 0

    def __contains__(self, row):
        self.looks += 1
        return super().__contains__(row)


def test_the_work_of_operators_deep_in_one_another_takes_few_looks_at_each():
    count = 2_000
    rows = [Row("aten::mm", row, 3 * count - row) for row in range(count)]
    profile = profile_of([], [4 * count], rows=rows)
    matrices = Operands(((4, 8), (8, 16)), ("float", "float"))
    operands = CountingOperands(dict.fromkeys(range(0, count, 2), matrices))
    object.__setattr__(profile.host, "operands", operands)
    kernels = [Span("gemm", row, row + 1) for row in range(count)]
    spans = profile_of(kernels, [4 * count]).spans
    object.__setattr__(spans, "operator", np.arange(count, dtype=np.int32))
    object.__setattr__(profile, "spans", spans)
    # All of them are part of the outermost.
    assert of_step(profile, ["matrix product"] * count)["matrix product"].flop == 1024
    assert operands.looks < 10 * count


def test_modules_deeper_than_any_model_count_for_the_last_that_is_named():
    frames = [
        Row(f"nn.Module: L_{depth}", depth, 10_000 - depth, HostKind.PYTHON)
        for depth in range(MOST_DEPTH + 9)
    ]
    call = Row("cudaLaunchKernel", 500, 501, HostKind.RUNTIME, 0, 1)
    (only,) = modules(profile_of([Span("gemm", 600, 700, launch=1)], [20_000], rows=[*frames, call]))
    assert only.name.endswith(f" / L_{MOST_DEPTH - 1}")
    assert only.forward == 100
