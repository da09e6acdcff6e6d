"""The difference of two explanations: both times, the waterfall from one to the other, and every part."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import accumulate, pairwise

from trainmark.explain.difference import Contribution, ExplanationDifference
from trainmark.explain.figures import apportioned, decimals_of, duration, signed_percent
from trainmark.explain.names import cause_name, class_name
from trainmark.explain.sentences import subject_line
from trainmark.pages import number
from trainmark.view.blocks import BarRow, Bars, Block, Items, Page, Section, Sentence, Table, Text, only
from trainmark.view.message import Message, _, joined

STYLE = "explain.css"
MINUS = "−"
PICOSECOND = 1e-12


def difference_page(difference: ExplanationDifference) -> Page:
    return Page(_("A against B"), list(_blocks(difference)), style=STYLE)


def _blocks(difference: ExplanationDifference) -> Iterator[Block]:
    yield Sentence(_("A: {subject}", subject=subject_line(difference.a)), "run")
    yield Sentence(_("B: {subject}", subject=subject_line(difference.b)), "run")
    is_faster = difference.seconds_b <= difference.seconds_a
    first, *others = _answer(difference)
    yield Sentence(first, f"verdict is-{'reliable' if is_faster else 'caution'}")
    yield from map(Sentence, others)
    title = _("Where the difference comes from ({unit})", unit=_unit(difference)[0])
    yield Section(title, [only("html", *_waterfall(difference)), _table(difference)])
    if difference.notes:
        yield Section(_("Notes"), [Items(difference.notes)])


def _answer(difference: ExplanationDifference) -> Iterator[Message]:
    """Yield the two times, their difference, and the contribution that makes up most of it."""
    change = difference.seconds_b - difference.seconds_a
    values = {
        "before": duration(difference.seconds_a),
        "after": duration(difference.seconds_b),
        "change": _signed_duration(change),
        "percent": signed_percent(change / difference.seconds_a if difference.seconds_a else None),
    }
    if difference.per == "step":
        yield _("A step takes {before} in A and {after} in B: {change} ({percent}).", **values)
    else:
        yield _("A sample takes {before} in A and {after} in B: {change} ({percent}).", **values)
    alike = [own for own in difference.contributions if own.change * change > 0]
    if alike:
        most = max(alike, key=lambda own: abs(own.change))
        name, part = _name(most), _signed_duration(most.change)
        yield _("Most of it: {name}, {change}.", name=name, change=part)


def _unit(difference: ExplanationDifference) -> tuple[Message, str, float]:
    """Return the unit of the table, its sign, and its seconds."""
    per_step = difference.per == "step"
    return (_("ms a step"), "ms", 1e-3) if per_step else (_("µs a sample"), "µs", 1e-6)


def _table(difference: ExplanationDifference) -> Table:
    """Every contribution, the largest change first; the last row is their sum."""
    whole = difference.seconds_b - difference.seconds_a
    cells, sums = _cells(difference)
    rows: list[Sequence[Text]] = [
        [_name(own), *texts, _share(own.change, whole)]
        for own, texts in zip(_by_change(difference), cells, strict=True)
    ]
    rows.append([_("whole step") if difference.per == "step" else "", *sums, _share(whole, whole)])
    header = (_("part"), "A", "B", _("change"), _("of the difference"))
    return Table(header, rows, frozenset({1, 2, 3, 4}), sortable=False, look="adds-up")


def _cells(difference: ExplanationDifference) -> tuple[list[list[str]], list[str]]:
    """Return A, B and the change of each contribution, and those of the whole, to which they add up."""
    ordered, scale = _by_change(difference), _unit(difference)[2]
    whole = difference.seconds_b - difference.seconds_a
    decimals = decimals_of(max(difference.seconds_a, difference.seconds_b) / scale)
    columns = [
        apportioned([round(value / PICOSECOND) for value in values], scale / PICOSECOND, decimals)
        for values in (
            [own.seconds_a for own in ordered],
            [own.seconds_b for own in ordered],
            [own.change for own in ordered],
        )
    ]
    rows = [
        [before.replace("-", MINUS), after.replace("-", MINUS), _signed(change)]
        for before, after, change in zip(*columns, strict=True)
    ]
    sums = [f"{value / scale:,.{decimals}f}" for value in (difference.seconds_a, difference.seconds_b, whole)]
    return rows, [*sums[:2], _signed(sums[2])]


def _by_change(difference: ExplanationDifference) -> list[Contribution]:
    return sorted(difference.contributions, key=lambda own: (-abs(own.change), own.name))


def _name(own: Contribution) -> str:
    if own.kind == "idle":
        return _("idle: {cause}", cause=cause_name(own.name))
    if own.kind == "overlap":
        return joined([class_name(name.strip()) for name in own.name.split("+")], " + ")
    return _("beyond the profile") if own.kind == "rest" else class_name(own.name)


def _signed_duration(seconds: float) -> str:
    sign = "+" if seconds > 0 else MINUS if seconds < 0 else "±"
    return sign + duration(abs(seconds))


def _signed(text: str) -> str:
    if text.startswith("-"):
        return MINUS + text[1:] if text.strip("-0.,") else text[1:]
    return f"+{text}" if text.strip("0.,") else text


def _share(change: float, whole: float) -> str:
    return number.percent(change / whole, 0).replace("-", MINUS) if whole else ""


def _waterfall(difference: ExplanationDifference) -> Iterator[Block]:
    """Yield the bars and what they mean."""
    low = waterfall_axis(difference)[0]
    note = _(
        "Each bar begins where the one above ends: to the left B takes less time, to the right more. The"
        " changes add up to the whole difference."
    )
    cut = _("The axis begins at {low}, not at 0.", low=duration(low))
    yield Bars(waterfall(difference), _("Where the difference comes from"))
    yield Sentence(joined([note, cut], " ") if low > 0 else note, "note")


def waterfall(difference: ExplanationDifference) -> list[BarRow]:
    """Return A, then every change but those of nothing from where the one before ended, then B."""
    levels, (cells, sums) = _levels(difference), _cells(difference)
    low, high = waterfall_axis(difference)
    span, sign = (high - low) or 1.0, _unit(difference)[1]

    def bar(name: str, look: str, one: float, other: float, amount: str) -> BarRow:
        left, right = max(low, min(one, other)), max(one, other)
        place, width = (left - low) / span, (right - left) / span
        return BarRow(name, look, place, width, f"{amount} {sign}", is_end=look == "k-whole")

    return [
        bar("A", "k-whole", low, difference.seconds_a, sums[0]),
        *(
            bar(_name(own), "k-less" if after < before else "k-more", before, after, texts[2])
            for own, texts, (before, after) in zip(
                _by_change(difference), cells, pairwise(levels), strict=True
            )
            if after != before
        ),
        bar("B", "k-whole", low, difference.seconds_b, sums[1]),
    ]


def waterfall_axis(difference: ExplanationDifference) -> tuple[float, float]:
    """Return its ends in seconds: from zero where the changes are large beside the times."""
    levels = _levels(difference)
    change = max(levels) - min(levels)
    return (0.0 if change > 0.5 * max(levels) else max(0.0, min(levels) - change)), max(levels)


def _levels(difference: ExplanationDifference) -> list[float]:
    """The time after each of the changes, A before them."""
    changes = [own.change for own in _by_change(difference)]
    return list(accumulate(changes, initial=difference.seconds_a))
