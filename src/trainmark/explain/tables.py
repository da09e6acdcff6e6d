"""The tables of an explanation."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from trainmark.explain import figures
from trainmark.explain.explanation import ClassTime, Explanation, IdleTime
from trainmark.explain.figures import Part, duration, milliseconds, signed_percent
from trainmark.explain.names import cause_name, class_name, holder_name, look
from trainmark.pages import number
from trainmark.view.blocks import Span, Table, Text
from trainmark.view.message import _, joined

FLOP = (("TFLOP", 1e12), ("GFLOP", 1e9), ("MFLOP", 1e6))
FLOP_FROM = 0.1  # of the larger unit, so that a column does not begin with zeros
BYTES = (("GB", 1e9), ("MB", 1e6))
GIB_FROM = 4 * number.GIB  # of a peak; below, a column in GiB would be zeros
MOST_LONGEST_SPANS = 40
LONGEST_KERNEL = 200
SHORT_KERNEL = 90
LONGEST_MODULE = 36
SEPARATOR = re.compile(r"\.| / ")


def step_table(explanation: Explanation) -> Table:
    """The classes, overlap and idle time, and as the last row the step that they add up to."""
    parts, steps = figures.parts(explanation), max(1, explanation.steps)
    classes = [part.of_class for part in parts]
    flop_unit, flop = _column([own.flop if own else None for own in classes], steps, FLOP)
    bytes_unit, moved = _column([own.bytes if own else None for own in classes], steps, BYTES)
    texts = figures.part_texts(explanation)
    rows: list[Sequence[Text]] = [
        [
            [Span("", f"swatch {look(part.kind, part.name)} paint"), part_name(part, explanation)],
            *texts[part.kind, part.name],
            "" if own is None else _per_step(own.launches, steps),
            flop,
            moved,
            *_floor(own, explanation),
        ]
        for part, own, flop, moved in zip(parts, classes, flop, moved, strict=True)
    ]
    launches = sum(own.launches for own in explanation.classes)
    rows.append([_("whole step"), *_whole(explanation, parts), _per_step(launches, steps), *[""] * 4])
    header = (_("class"), "ms", _("share"), _("launches"))
    columns = [*header, flop_unit, bytes_unit, _("floor ms"), _("× floor")]
    return replace(_table(columns, rows), look="adds-up", looks={0: "stuck painted"})


def _whole(explanation: Explanation, parts: Sequence[Part]) -> list[str]:
    total = [sum(part.nanoseconds for part in parts)]
    return [*figures.step_milliseconds(explanation, total), *figures.shares(explanation, total)]


def part_name(part: Part, explanation: Explanation) -> str:
    if part.kind == "idle":
        return _("idle: {cause}", cause=cause_name(part.name, explanation.subject.kind))
    if part.kind == "overlap":
        return joined(list(map(class_name, part.classes)), " + ") or _("other overlaps")
    return class_name(part.name)


def idle_table(explanation: Explanation, is_below: bool = False) -> Table:
    """Each cause, its evidence in a column of its own or below its name."""
    steps, texts = max(1, explanation.steps), figures.part_texts(explanation)
    rows: list[Sequence[Text]] = []
    for own in idle_by_time(explanation):
        name = cause_name(own.cause, explanation.subject.kind)
        figures_of = [*texts["idle", own.cause], _per_step(own.gaps, steps)]
        if is_below:
            rows.append([[name, *(Span(text, "why") for text in own.evidence)], *figures_of])
        else:
            rows.append([name, *figures_of, joined(own.evidence, _("; "))])
    header = [_("cause"), "ms", _("share"), _("gaps")]
    return _table(header if is_below else [*header, _("evidence")], rows, {0, 4})


def idle_by_time(explanation: Explanation) -> list[IdleTime]:
    return sorted(explanation.idle, key=lambda own: (-own.nanoseconds, own.cause))


def kernels_table(explanation: Explanation) -> Table:
    """The kernels of all classes, the longest first."""
    pairs = [(kernel, own) for own in explanation.classes for kernel in own.kernels]
    longest = sorted(pairs, key=lambda pair: (-pair[0].nanoseconds, pair[0].name))
    rows = [
        [
            class_name(own.name),
            *_kernel(explanation, kernel.nanoseconds, kernel.launches),
            short_kernel(kernel.name),
        ]
        for kernel, own in longest
    ]
    return _table([_("class"), "ms", _("share"), _("launches"), _("kernel or operator")], rows, {0, 4})


def class_kernels_table(explanation: Explanation, own: ClassTime) -> Table:
    rows = [
        [_start(kernel.name), *_kernel(explanation, kernel.nanoseconds, kernel.launches)]
        for kernel in own.kernels
    ]
    header = [_("kernel or operator"), "ms", _("share"), _("launches")]
    return replace(_table(header, rows), look="as-is")


def modules_table(explanation: Explanation, longest: int | None = None) -> Table:
    """Modules by their time; names longer than `longest` lose their beginning."""
    steps, prefix = max(1, explanation.steps), _common_module(explanation)
    modules = sorted(explanation.modules, key=lambda own: (-own.forward - own.backward, own.name))
    rows = [
        [
            _end(own.name.removeprefix(prefix), longest),
            *(figures.step_milliseconds(explanation, [time])[0] for time in (own.forward, own.backward)),
            *figures.shares(explanation, [own.forward + own.backward]),
            _per_step(own.launches, steps),
        ]
        for own in modules
    ]
    return _table([_("module"), _("forward ms"), _("backward ms"), _("share"), _("launches")], rows)


def _end(name: str, longest: int | None) -> str:
    """Cut a path at its beginning: what tells modules apart stands at the end."""
    return name if longest is None or len(name) <= longest else "…" + name[1 - longest :]


def modules_title(explanation: Explanation) -> str:
    """Name the module that all others are in, which their names then leave out."""
    prefix = _common_module(explanation)
    return _("By module of {name}", name=prefix.rstrip("./ ")) if prefix else _("By module")


def _common_module(explanation: Explanation) -> str:
    """Return how the paths of all modules begin, up to a separator: `model.` or `GPT_0 / `."""
    names = sorted(own.name for own in explanation.modules)
    if len(names) < 2:
        return ""
    # What the first and the last in order begin with, all between them begin with too.
    starts = [names[0][: match.end()] for match in SEPARATOR.finditer(names[0])]
    return max((start for start in starts if names[-1].startswith(start)), key=len, default="")


def what_if_table(explanation: Explanation, has_reasons: bool = False) -> Table:
    """Each change with its prediction; why, and how it is made, below its title where that is asked for."""
    rows: list[Sequence[Text]] = []
    for change in explanation.what_ifs:
        how = Span(change.how, "code" if change.is_line else "how") if change.how else None
        verified = change.verified
        rows.append(
            [
                [change.title, Span(change.why, "why"), how] if has_reasons else change.title,
                milliseconds(change.seconds),
                f"[{milliseconds(change.low)}, {milliseconds(change.high)}]",
                signed_percent(figures.throughput_gain(explanation, change)),
                milliseconds(verified.seconds) if verified else "",
                signed_percent(figures.prediction_error(change)) if verified else "",
            ]
        )
    header = [_("what if"), _("step ms"), _("interval"), _("throughput"), _("verified"), _("error")]
    return _table(header, rows)


def ranks_table(explanation: Explanation) -> Table:
    rows = [
        [
            own.rank,
            own.node,
            *map(_short, (own.step, own.compute, own.exposed, own.hidden, own.idle, own.late)),
        ]
        for own in explanation.ranks
    ]
    times = (_("whole step"), _("compute"), _("exposed"), _("hidden"), _("idle"), _("waited for"))
    return _table([_("rank"), _("node"), *times], rows, {1})


def buckets_table(explanation: Explanation) -> Table:
    link = explanation.peaks.link
    rows = [
        [
            own.name,
            "" if own.bytes is None else number.significant(own.bytes / 1e6, 3),
            _short(own.seconds),
            _short(own.exposed),
            "" if own.bandwidth is None else number.significant(own.bandwidth / 1e9, 3),
            number.percent(own.bandwidth / link, 0) if own.bandwidth and link else "",
        ]
        for own in explanation.buckets
    ]
    return _table([_("collective"), "MB", "ms", _("exposed"), "GB/s", _("of the link")], rows)


def memory_table(explanation: Explanation) -> Table:
    memory = explanation.memory
    holders = sorted(memory.parts, key=lambda part: -part.bytes) if memory else []
    whole = sum(part.bytes for part in holders)  # fragmentation lies beyond the peak
    unit, size, digits = ("GiB", number.GIB, 2) if whole >= GIB_FROM else ("MiB", number.MIB, 1)
    rows = [
        [
            holder_name(part.kind),
            part.name,
            f"{part.bytes / size:,.{digits}f}",
            number.percent(part.bytes / whole) if whole else "",
            part.freed,
        ]
        for part in holders
    ]
    return _table([_("holder"), _("name"), unit, _("share"), _("freed by")], rows, {0, 1, 4})


def spans_table(explanation: Explanation) -> Table:
    """The longest spans of the timeline, for those who cannot see or move it."""
    spans = sorted(explanation.timeline.spans, key=lambda span: (span.start - span.end, span.start))
    rows = [
        [
            _start(span.name),
            class_name(span.kernel_class),
            span.lane,
            f"{span.start / figures.MILLISECOND:,.3f} ms",
            duration((span.end - span.start) / 1e9),
        ]
        for span in spans[:MOST_LONGEST_SPANS]
    ]
    header = [_("kernel or operator"), _("class"), _("lane"), _("start"), _("duration")]
    return replace(_table(header, rows, {0, 1, 2}), look="as-is")


def _start(name: str) -> str:
    return name if len(name) <= LONGEST_KERNEL else name[: LONGEST_KERNEL - 1] + "…"


def short_kernel(name: str) -> str:
    """Return a kernel's name as the terminal and Markdown have room for, its end cut."""
    bare = name.removeprefix("void ").replace("(anonymous namespace)::", "")
    return bare if len(bare) <= SHORT_KERNEL else bare[: SHORT_KERNEL - 1] + "…"


def _kernel(explanation: Explanation, nanoseconds: int, launches: int) -> list[str]:
    return [
        *figures.step_milliseconds(explanation, [nanoseconds]),
        *figures.shares(explanation, [nanoseconds]),
        _per_step(launches, max(1, explanation.steps)),
    ]


def _short(seconds: float) -> str:
    return f"{1000 * seconds:,.2f}"


def _column(
    values: Sequence[float | None], steps: int, units: Sequence[tuple[str, float]]
) -> tuple[str, list[str]]:
    """Return the unit that suits the largest value of a step, and the values of one."""
    of_step = [None if value is None else value / steps for value in values]
    largest = max((value for value in of_step if value is not None), default=0.0)
    suited = [pair for pair in units if largest >= FLOP_FROM * pair[1]] or [units[-1]]
    return figures.scaled(of_step, *suited[0])


def _per_step(count: int, steps: int) -> str:
    per_step = count / steps
    return f"{per_step:,.0f}" if per_step.is_integer() else f"{per_step:,.1f}"


def _floor(own: ClassTime | None, explanation: Explanation) -> list[str]:
    if own is None or own.floor is None:
        return ["", ""]
    return [*figures.step_milliseconds(explanation, [own.floor]), figures.times_floor_text(own, 3)]


def _table(header: Sequence[Text], rows: Sequence[Sequence[Text]], words: set[int] | None = None) -> Table:
    """Return the table without empty columns; all columns but `words` are numbers."""
    filled = [place for place in range(len(header)) if any(row[place] not in ("", None) for row in rows)]
    numbers = {new for new, place in enumerate(filled) if place not in (words or {0})}
    return Table(
        [header[place] for place in filled],
        [[row[place] for place in filled] for row in rows],
        frozenset(numbers),
        sortable=False,
    )
