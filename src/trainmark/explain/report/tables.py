"""The tables of an explanation, for terminal, Markdown and page alike."""

from __future__ import annotations

import re
from collections.abc import Sequence

from trainmark.explain.explanation import ClassTime, Explanation, IdleTime
from trainmark.explain.report import figures
from trainmark.explain.report.figures import Part, milliseconds, signed_percent
from trainmark.explain.report.language.chinese import sentence
from trainmark.explain.report.language.words import cause_name, class_name, explain_words, holder_name
from trainmark.explain.report.sentences import duration
from trainmark.pages import number
from trainmark.report.format.table import Table
from trainmark.report.format.words import Lang

FLOP = (("TFLOP", 1e12), ("GFLOP", 1e9), ("MFLOP", 1e6))
FLOP_FROM = 0.1  # of the larger unit, so that a column does not begin with zeros
BYTES = (("GB", 1e9), ("MB", 1e6))
GIB_FROM = 4 * number.GIB  # of a peak; below, a column in GiB would be zeros
MOST_LONGEST_SPANS = 40
LONGEST_KERNEL = 200
SHORT_KERNEL = 90
EMPTY = Table((), ())
SEPARATOR = re.compile(r"\.| / ")


def step_table(explanation: Explanation, lang: Lang = "en") -> Table:
    """The classes, overlap and idle time, and as the last row the step that they add up to."""
    t, own = explain_words(lang), figures.parts(explanation)
    classes, steps = [part.of_class for part in own], max(1, explanation.steps)
    texts, times = figures.part_texts(explanation), [part.nanoseconds for part in own]
    flop_unit, flop = _column([_each(one.flop if one else None, steps) for one in classes], FLOP)
    bytes_unit, moved = _column([_each(one.bytes if one else None, steps) for one in classes], BYTES)
    rows = [
        [
            part_name(part, lang, explanation.subject.kind),
            *texts[part.kind, part.name],
            _launches(one, steps),
            flop,
            moved,
            *_floor(one, explanation),
        ]
        for part, one, flop, moved in zip(own, classes, flop, moved, strict=True)
    ]
    launches = sum(one.launches for one in explanation.classes)
    whole = [
        *figures.step_milliseconds(explanation, [sum(times)]),
        *figures.shares(explanation, [sum(times)]),
    ]
    rows.append([t["sum"], *whole, _per_step(launches, steps), "", "", "", ""])
    header = [
        t["class"],
        "ms",
        t["share"],
        t["launches"],
        flop_unit,
        bytes_unit,
        t["floor_ms"],
        t["times_floor"],
    ]
    return _without_empty(Table(header, rows, frozenset(range(1, 8))))


def part_name(part: Part, lang: Lang, kind: str | None = None) -> str:
    t = explain_words(lang)
    if part.kind == "idle":
        return t["idle_row"].format(cause=cause_name(part.name, lang, kind))
    if part.kind == "overlap":
        names = (class_name(name, lang) for name in part.classes)
        return t["overlap_join"].join(names) or t["other_overlaps"]
    return class_name(part.name, lang)


def idle_table(explanation: Explanation, lang: Lang = "en") -> Table:
    t, steps = explain_words(lang), max(1, explanation.steps)
    texts = figures.part_texts(explanation)
    rows = [
        [
            cause_name(own.cause, lang, explanation.subject.kind),
            *texts["idle", own.cause],
            _per_step(own.gaps, steps),
            "; ".join(sentence(text, lang) for text in own.evidence),
        ]
        for own in idle_by_time(explanation)
    ]
    return Table([t["cause"], "ms", t["share"], t["gaps"], t["evidence"]], rows, frozenset({1, 2, 3}))


def idle_by_time(explanation: Explanation) -> list[IdleTime]:
    return sorted(explanation.idle, key=lambda own: (-own.nanoseconds, own.cause))


def kernels_table(explanation: Explanation, most: int, lang: Lang = "en") -> Table:
    """The longest kernels of all classes."""
    t = explain_words(lang)
    pairs = [(kernel, own) for own in explanation.classes for kernel in own.kernels]
    longest = sorted(pairs, key=lambda pair: (-pair[0].nanoseconds, pair[0].name))[:most]
    rows = [
        [
            class_name(own.name, lang),
            *_kernel(explanation, kernel.nanoseconds, kernel.launches),
            short_kernel(kernel.name),
        ]
        for kernel, own in longest
    ]
    return Table([t["class"], "ms", t["share"], t["launches"], t["kernel"]], rows, right=frozenset({1, 2, 3}))


def class_kernels_table(explanation: Explanation, own: ClassTime, lang: Lang = "en") -> Table:
    t = explain_words(lang)
    rows = [
        [_start(kernel.name), *_kernel(explanation, kernel.nanoseconds, kernel.launches)]
        for kernel in own.kernels
    ]
    return Table([t["kernel"], "ms", t["share"], t["launches"]], rows, right=frozenset({1, 2, 3}))


def modules_table(
    explanation: Explanation, most: int | None = None, lang: Lang = "en", longest: int | None = None
) -> Table:
    """Modules by their time, as many as `most`; names longer than `longest` lose their beginning."""
    t, steps, prefix = explain_words(lang), max(1, explanation.steps), _common_module(explanation)
    modules = sorted(explanation.modules, key=lambda own: (-own.forward - own.backward, own.name))[:most]
    rows = [
        [
            _end(own.name.removeprefix(prefix), longest),
            _milliseconds(explanation, own.forward),
            _milliseconds(explanation, own.backward),
            *figures.shares(explanation, [own.forward + own.backward]),
            _per_step(own.launches, steps),
        ]
        for own in modules
    ]
    header = [t["module"], t["forward"], t["backward"], t["share"], t["launches"]]
    return Table(header, rows, frozenset({1, 2, 3, 4}))


def _end(name: str, longest: int | None) -> str:
    """Cut a path at its beginning: what tells modules apart stands at the end."""
    return name if longest is None or len(name) <= longest else "…" + name[1 - longest :]


def modules_title(explanation: Explanation, lang: Lang = "en") -> str:
    """Name the module that all others are in, which their names then leave out."""
    t, prefix = explain_words(lang), _common_module(explanation)
    return t["modules_of"].format(name=prefix.rstrip("./ ")) if prefix else t["modules"]


def _common_module(explanation: Explanation) -> str:
    """Return how the paths of all modules begin, up to a separator: `model.` or `GPT_0 / `."""
    names = sorted(own.name for own in explanation.modules)
    if len(names) < 2:
        return ""
    # What the first and the last in order begin with, all between them begin with too.
    starts = [names[0][: match.end()] for match in SEPARATOR.finditer(names[0])]
    return max((start for start in starts if names[-1].startswith(start)), key=len, default="")


def what_if_table(explanation: Explanation, lang: Lang = "en") -> Table:
    t = explain_words(lang)
    rows = []
    for change in explanation.what_ifs:
        verified = change.verified
        rows.append(
            [
                sentence(change.title, lang),
                milliseconds(change.seconds),
                f"[{milliseconds(change.low)}, {milliseconds(change.high)}]",
                signed_percent(figures.throughput_gain(explanation, change)),
                milliseconds(verified.seconds) if verified else "",
                signed_percent(figures.prediction_error(change)) if verified else "",
            ]
        )
    header = [t["change"], t["predicted"], t["interval"], t["throughput"], t["verified"], t["error"]]
    return _without_empty(Table(header, rows, frozenset(range(1, 6))))


def ranks_table(explanation: Explanation, lang: Lang = "en") -> Table:
    t = explain_words(lang)
    rows = [
        [
            own.rank,
            own.node,
            *map(_short, (own.step, own.compute, own.exposed, own.hidden, own.idle, own.late)),
        ]
        for own in explanation.ranks
    ]
    header = [t["rank"], t["node"], t["sum"], t["compute"], t["exposed"], t["hidden"], t["idle"], t["late"]]
    return _without_empty(Table(header, rows, frozenset({0, 2, 3, 4, 5, 6, 7})))


def buckets_table(explanation: Explanation, lang: Lang = "en") -> Table:
    t, link = explain_words(lang), explanation.peaks.link
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
    header = [t["bucket"], "MB", "ms", t["exposed"], "GB/s", t["of_link"]]
    return _without_empty(Table(header, rows, frozenset(range(1, 6))))


def memory_table(explanation: Explanation, lang: Lang = "en") -> Table:
    t, memory = explain_words(lang), explanation.memory
    holders = sorted(memory.parts, key=lambda part: -part.bytes) if memory else []
    whole = sum(part.bytes for part in holders)  # fragmentation lies beyond the peak
    unit, size, digits = ("GiB", number.GIB, 2) if whole >= GIB_FROM else ("MiB", number.MIB, 1)
    rows = [
        [
            holder_name(part.kind, lang),
            part.name and sentence(part.name, lang),
            f"{part.bytes / size:,.{digits}f}",
            number.percent(part.bytes / whole) if whole else "",
            part.freed and sentence(part.freed, lang),
        ]
        for part in holders
    ]
    return _without_empty(
        Table([t["holder"], t["name"], unit, t["share"], t["freed"]], rows, frozenset({2, 3}))
    )


def spans_table(explanation: Explanation, lang: Lang = "en") -> Table:
    """The longest spans of the timeline, for those who cannot see or move it."""
    t = explain_words(lang)
    spans = sorted(explanation.timeline.spans, key=lambda span: (span.start - span.end, span.start))
    rows = [
        [
            _start(span.name),
            class_name(span.kernel_class, lang),
            span.lane,
            f"{span.start / figures.MILLISECOND:,.3f} ms",
            duration((span.end - span.start) / 1e9),
        ]
        for span in spans[:MOST_LONGEST_SPANS]
    ]
    return Table([t["kernel"], t["class"], t["lane"], t["start"], t["duration"]], rows, frozenset({3, 4}))


def _start(name: str) -> str:
    return name if len(name) <= LONGEST_KERNEL else name[: LONGEST_KERNEL - 1] + "…"


def short_kernel(name: str) -> str:
    """Return a kernel's name as the terminal and Markdown have room for, its end cut."""
    bare = name.removeprefix("void ").replace("(anonymous namespace)::", "")
    return bare if len(bare) <= SHORT_KERNEL else bare[: SHORT_KERNEL - 1] + "…"


def _kernel(explanation: Explanation, nanoseconds: int, launches: int) -> list[str]:
    return [
        _milliseconds(explanation, nanoseconds),
        *figures.shares(explanation, [nanoseconds]),
        _per_step(launches, max(1, explanation.steps)),
    ]


def _milliseconds(explanation: Explanation, nanoseconds: int) -> str:
    return figures.step_milliseconds(explanation, [nanoseconds])[0]


def _short(seconds: float) -> str:
    return f"{1000 * seconds:,.2f}"


def _column(values: Sequence[float | None], units: Sequence[tuple[str, float]]) -> tuple[str, list[str]]:
    largest = max((value for value in values if value is not None), default=0.0)
    suited = [pair for pair in units if largest >= FLOP_FROM * pair[1]] or [units[-1]]
    return figures.scaled(values, suited[:1])


def _each(value: float | None, steps: int) -> float | None:
    return None if value is None else value / steps


def _launches(own: ClassTime | None, steps: int) -> str:
    return "" if own is None else _per_step(own.launches, steps)


def _per_step(count: int, steps: int) -> str:
    per_step = count / steps
    return f"{per_step:,.0f}" if per_step.is_integer() else f"{per_step:,.1f}"


def _floor(own: ClassTime | None, explanation: Explanation) -> list[str]:
    if own is None or own.floor is None:
        return ["", ""]
    return [_milliseconds(explanation, own.floor), figures.times_floor_text(own, 3)]


def _without_empty(table: Table) -> Table:
    """Leave out the columns in which no row has anything."""
    filled = [
        place for place in range(len(table.header)) if any(row[place] not in ("", None) for row in table.rows)
    ]
    return Table(
        [table.header[place] for place in filled],
        [[row[place] for place in filled] for row in table.rows],
        frozenset(new for new, place in enumerate(filled) if place in table.right),
    )
