"""The difference of two explanations: contributions of classes, idle causes and overlaps that add up to it.

Every time is a whole multiple of one power of two, so that plain sums of the floats are exact.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

from trainmark.base.errors import UserError
from trainmark.explain.explanation import ClassTime, ExplainedSubject, Explanation
from trainmark.explain.names import class_name
from trainmark.measure.figure import Ratio
from trainmark.view.message import Message, _

Kind = Literal["class", "idle", "overlap", "rest"]
Per = Literal["step", "sample"]
NANOSECONDS = 10**9
# Of a float's 53 bits: the others are for the sums.
GRID_BITS = 46
MOST_KERNELS = 5  # of a class that only one side has
LEAST_KERNEL_SHARE = 0.005  # of a step
LONGEST_NAME = 80


@dataclass(frozen=True)
class Contribution:
    """One row: `rest` is what the step timed without the profiler has beyond the profiled one."""

    name: str
    kind: Kind
    seconds_a: float
    seconds_b: float
    change: float


@dataclass(frozen=True)
class ExplanationDifference:
    """From A to B in seconds a step, or a sample where the batches differ; the largest change first.

    The columns add up to `seconds_a`, `seconds_b` and their difference. `measured` is B's throughput by A's
    over the trials of the two runs.
    """

    a: ExplainedSubject
    b: ExplainedSubject
    seconds_a: float
    seconds_b: float
    per: Per
    contributions: tuple[Contribution, ...]
    notes: tuple[str, ...] = ()
    measured: Ratio | None = None


def difference(a: Explanation, b: Explanation, measured: Ratio | None = None) -> ExplanationDifference:
    """Return what changes from A to B, row by row; UserError where a side has no shares."""
    for name, side in (("A", a), ("B", b)):
        _check(name, side)
    if a.subject.unit != b.subject.unit:
        raise UserError(
            f"A counts {a.subject.unit} and B {b.subject.unit}: there is no difference by step or sample; "
            "compare two runs of one workload."
        )
    per: Per = "sample" if _batches_differ(a.subject, b.subject) else "step"
    rows_a, rows_b = _rows(a, per), _rows(b, per)
    grid = _grid(rows_a, rows_b)
    contributions = []
    for kind, name in {**rows_a, **rows_b}:
        before, after = (_on_grid(rows.get((kind, name), Fraction()), grid) for rows in (rows_a, rows_b))
        if before or after:
            contributions.append(Contribution(name, kind, float(before), float(after), float(after - before)))
    contributions.sort(key=lambda row: (-abs(row.change), row.kind, row.name))
    seconds_a, seconds_b = (
        sum(row.seconds_a for row in contributions),
        sum(row.seconds_b for row in contributions),
    )
    return ExplanationDifference(
        a.subject,
        b.subject,
        seconds_a,
        seconds_b,
        per,
        tuple(contributions),
        tuple(_notes(a, b, per, measured)),
        measured,
    )


def _check(name: str, side: Explanation) -> None:
    if side.agreement.refusal is not None:
        raise UserError(f"{name} ({side.subject.title}) has no shares to compare: {side.agreement.refusal}")
    parts = sum(_nanoseconds(side).values())
    if side.steps < 1 or side.total < 1 or parts != side.total:
        raise UserError(f"{name} ({side.subject.title}) holds no whole step: profile it again.")


def _batches_differ(a: ExplainedSubject, b: ExplainedSubject) -> bool:
    return bool(a.samples and b.samples and a.samples != b.samples)


def _nanoseconds(side: Explanation) -> dict[tuple[Kind, str], int]:
    """Return every row over all profiled steps; rows of one name are added up."""
    rows: dict[tuple[Kind, str], int] = {}
    parts: list[tuple[Kind, str, int]] = [("class", part.name, part.alone) for part in side.classes]
    parts += [("overlap", " + ".join(part.classes), part.nanoseconds) for part in side.overlaps]
    parts += [("idle", part.cause, part.nanoseconds) for part in side.idle]
    for kind, name, nanoseconds in parts:
        rows[kind, name] = rows.get((kind, name), 0) + nanoseconds
    return rows


def _rows(side: Explanation, per: Per) -> dict[tuple[Kind, str], Fraction]:
    """Return every row in seconds; with the rest they add up to the step timed without the profiler."""
    samples = Fraction(side.subject.samples or 1) if per == "sample" else Fraction(1)
    divisor = side.steps * NANOSECONDS * samples
    rows = {name: nanoseconds / divisor for name, nanoseconds in _nanoseconds(side).items()}
    rest = Fraction(side.step_seconds) / samples - sum(rows.values())
    if side.agreement.measured:
        rows["rest", "rest"] = rest
    return rows


def _grid(*sides: Mapping[tuple[Kind, str], Fraction]) -> Fraction:
    """Return a power of two that is nothing beside the longer side, and sums of whose multiples are exact."""
    longer = max(sum(map(abs, rows.values()), Fraction()) for rows in sides)
    _, exponent = math.frexp(float(longer))
    return Fraction(2) ** (exponent - GRID_BITS)


def _on_grid(seconds: Fraction, grid: Fraction) -> Fraction:
    return round(seconds / grid) * grid


def _notes(a: Explanation, b: Explanation, per: Per, measured: Ratio | None) -> Iterator[str]:
    if per == "sample":
        yield _(
            "A takes {a} {unit} a step and B {b}: times are of one of them.",
            a=f"{a.subject.samples:,g}",
            unit=a.subject.unit,
            b=f"{b.subject.samples:,g}",
        )
    elif bool(a.subject.samples) != bool(b.subject.samples):
        yield _(
            "The batch of {side} is not known: times are of a step, whatever its size.",
            side="B" if a.subject.samples else "A",
        )
    if a.subject.world_size != b.subject.world_size:
        yield _(
            "Ranks: {a} in A, {b} in B; times are of one rank's step.",
            a=a.subject.world_size,
            b=b.subject.world_size,
        )
    if measured is not None:
        samples = (b.subject.samples or 1) / (a.subject.samples or 1) if per == "sample" else 1
        yield _measured_note(a.step_seconds / b.step_seconds * samples, measured)
    yield from _kernel_notes("A", a, b, per)
    yield from _kernel_notes("B", b, a, per)


def _measured_note(explained: float, measured: Ratio) -> Message:
    interval = measured.interval
    ratios = {"measured": f"{measured.value:.4g}", "explained": f"{explained:.4g}"}
    if interval is None:
        return _(
            "Over the trials of both runs B's throughput is ×{measured} of A's (too few trials for an"
            " interval); the steps explained here give ×{explained}.",
            **ratios,
        )
    is_inside = interval.low <= explained <= interval.high
    return _(
        "Over the trials of both runs B's throughput is ×{measured} of A's [{low}, {high}] at {confidence};"
        " the steps explained here give ×{explained}, {where} that interval.",
        low=f"{interval.low:.4g}",
        high=f"{interval.high:.4g}",
        confidence=f"{interval.confidence:.0%}",
        where=_("inside") if is_inside else _("outside of"),
        **ratios,
    )


def _kernel_notes(name: str, side: Explanation, other: Explanation, per: Per) -> Iterator[str]:
    """Name the kernels that the other side has in no class, the longest of each class."""
    elsewhere = {kernel.name for part in other.classes for kernel in part.kernels}
    if not elsewhere:
        return
    for part in side.classes:
        rows = [
            f"{_short(kernel)} {_milliseconds(seconds)}"
            for kernel, seconds in _longest(part, elsewhere, side, per).items()
        ]
        if rows:
            kernels = "; ".join(rows)
            yield _(
                "Only in {side}, {name}: {kernels}.", side=name, name=class_name(part.name), kernels=kernels
            )


def _longest(part: ClassTime, elsewhere: set[str], side: Explanation, per: Per) -> Mapping[str, float]:
    own = [kernel for kernel in part.kernels if kernel.name not in elsewhere]
    own = [kernel for kernel in own if kernel.nanoseconds >= LEAST_KERNEL_SHARE * side.total]
    own.sort(key=lambda kernel: (-kernel.nanoseconds, kernel.name))
    samples = side.subject.samples if per == "sample" and side.subject.samples else 1
    divisor = NANOSECONDS * side.steps * samples
    return {kernel.name: kernel.nanoseconds / divisor for kernel in own[:MOST_KERNELS]}


def _short(name: str) -> str:
    return name if len(name) <= LONGEST_NAME else name[: LONGEST_NAME - 1] + "…"


def _milliseconds(seconds: float) -> str:
    return f"{seconds * 1e3:.3g} ms" if seconds >= 1e-3 else f"{seconds * 1e6:.3g} µs"
