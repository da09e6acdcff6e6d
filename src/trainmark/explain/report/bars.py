"""Bars of the page as plain lengths in per cent: the stacked step, times against floors, the waterfall."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import accumulate, pairwise

from trainmark.explain.difference import ExplanationDifference
from trainmark.explain.explanation import Explanation
from trainmark.explain.report import difference_text, figures, tables
from trainmark.explain.report.language.words import class_name, explain_words
from trainmark.explain.report.look import kind_look, look
from trainmark.pages import number
from trainmark.report.format.words import Lang


@dataclass(frozen=True)
class Segment:
    """A piece of a stacked bar, `width` per cent of it."""

    look: str
    width: float
    name: str
    share: str
    amount: str


@dataclass(frozen=True)
class Bar:
    """A row of bars: from `start`, `width` long, the first `solid` of it in full colour."""

    name: str
    look: str
    start: float
    width: float
    solid: float
    text: str
    note: str = ""


def stacked(explanation: Explanation, lang: Lang) -> list[Segment]:
    texts, segments = figures.part_texts(explanation), []
    for part in figures.parts(explanation):
        if part.nanoseconds > 0 and explanation.total > 0:
            milliseconds, share = texts[part.kind, part.name]
            width = 100 * part.nanoseconds / explanation.total
            segments.append(
                Segment(
                    kind_look(part.kind, part.name),
                    width,
                    tables.part_name(part, lang, explanation.subject.kind),
                    share,
                    f"{milliseconds} ms",
                )
            )
    return segments


def floors(explanation: Explanation, lang: Lang) -> list[Bar]:
    """Time of each class that has a floor, the longest first."""
    t, steps = explain_words(lang), max(1, explanation.steps) * figures.MILLISECOND
    known = [own for own in explanation.classes if own.floor]
    longest = max((max(own.busy, own.floor or 0) for own in known), default=1)
    bounds = {"arithmetic": t["arithmetic"], "memory": t["memory_bound"], "link": t["link"]}
    bars = []
    for own in sorted(known, key=lambda own: -own.busy):
        floor = own.floor or 0
        bars.append(
            Bar(
                class_name(own.name, lang),
                look(own.name),
                0.0,
                100 * own.busy / longest,
                100 * min(1.0, floor / own.busy) if own.busy else 0.0,
                f"{figures.times_floor_text(own, 2)} ×",
                f"{number.significant(own.busy / steps, 3)} ms, {t['floor']} "
                f"{number.significant(floor / steps, 3)} ms"
                + (f" ({bounds.get(own.bound, own.bound)})" if own.bound else ""),
            )
        )
    return bars


def waterfall(difference: ExplanationDifference, lang: Lang) -> list[Bar]:
    """A first, then every change from where the one before ended, then B.

    What did not change has no bar.
    """
    levels, rows = _levels(difference), difference_text.table(difference, lang).rows
    low, high = waterfall_axis(difference)
    span, unit = (high - low) or 1.0, difference_text.unit_sign(difference)

    def bar(name: object, look: str, one: float, other: float, amount: object) -> Bar:
        left, right = max(low, min(one, other)), max(one, other)
        place, width = 100 * (left - low) / span, 100 * (right - left) / span
        return Bar(str(name), look, place, width, 100.0, f"{amount} {unit}")

    whole = rows[-1]
    return [
        bar("A", "k-whole", low, difference.seconds_a, whole[1]),
        *(
            bar(row[0], "k-less" if after < before else "k-more", before, after, row[3])
            for row, (before, after) in zip(rows, pairwise(levels), strict=False)
            if after != before
        ),
        bar("B", "k-whole", low, difference.seconds_b, whole[2]),
    ]


def waterfall_axis(difference: ExplanationDifference) -> tuple[float, float]:
    """Return its ends in seconds: from zero where the changes are large beside the times."""
    levels = _levels(difference)
    change = max(levels) - min(levels)
    return (0.0 if change > 0.5 * max(levels) else max(0.0, min(levels) - change)), max(levels)


def _levels(difference: ExplanationDifference) -> list[float]:
    """The time after each of the changes, A before them."""
    changes = [own.change for own in difference_text.by_change(difference)]
    return list(accumulate(changes, initial=difference.seconds_a))
