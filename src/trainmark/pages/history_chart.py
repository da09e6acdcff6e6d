"""A case over time as a chart: results with intervals, levels, and the places where the level changed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from itertools import pairwise

from trainmark.measure.history.changes import LevelDrift
from trainmark.measure.history.series import DATE, ORDER_FACTS, RunPoint
from trainmark.pages import number
from trainmark.pages.history import History, MarkedChange
from trainmark.pages.history_cells import date, date_time, fact_text, has_too_few, percent_change
from trainmark.view.chart.axis import Axis, Tick, linear
from trainmark.view.chart.model import Chart, Dots, Figure, Label, Line, Mark, Panel, Plot, Whiskers
from trainmark.view.message import _

HEIGHT = 280
AIR = 0.08
LEAST_REACH = 0.02
MOST_TICKS = 8
# Labels of changes closer than this share of the axis stand on several lines, pixels below the upper edge.
LABEL_ROOM = 0.1
LABEL_LINES = (-13, -28, -43)
LABEL_SHIFT = 6
RIGHT_SIDE = 0.75
# From here on dots are smaller, and the lines of levels lie above them.
MANY_POINTS = 120
SPARK_WIDTH, SPARK_HEIGHT = 140, 30

# What results can be ordered by.
ORDERS = {
    DATE: _("date"),
    "commit": _("commit"),
    "version": _("framework version"),
    "driver": _("driver"),
}

PointLink = Callable[[History, int], str]


def no_link(case: History, index: int) -> str:
    return ""


def plot(case: History, by: str = DATE, link: PointLink = no_link) -> Plot:
    """Return the plot of one case: by date over time and one after another, by a fact in its order alone."""
    ordered = ordered_chart(case, by, link)
    if by != DATE:
        return Plot(f"history-{case.id}", [Figure("", {_("In order"): ordered})])
    timed = timed_chart(case, link)
    return Plot(f"history-{case.id}", [Figure("", {_("Over time"): timed, _("In order"): ordered})])


def timed_chart(case: History, link: PointLink = no_link) -> Chart:
    """Return the results where they lie in time."""
    times = [point.time for point in case.points]
    return _chart(case, time_axis(times), times, link)


def ordered_chart(case: History, by: str = DATE, link: PointLink = no_link) -> Chart:
    """Return the results one after another, in the order that the case has them."""
    order = [float(index) for index in range(len(case.points))]
    return _chart(case, _order_axis(case, by), order, link)


def _chart(case: History, across: Axis, places: Sequence[float], link: PointLink) -> Chart:
    bounds = value_bounds(case)
    dots, levels = _dots(case, places, link), _levels(case, places)
    marks = [*_intervals(case, places), *_changes(case, across, places, bounds[1])]
    marks += [*dots, *levels] if len(places) > MANY_POINTS else [*levels, *dots]
    return Chart(across, [Panel(linear([], case.rate_unit, bounds=bounds), marks, HEIGHT)])


def value_bounds(case: History) -> tuple[float, float]:
    """Return the ends of the value axis: all medians and all intervals lie between them."""
    medians = [point.median for point in case.points]
    low, high = min(medians), max(medians)
    intervals = [point.interval for point in case.points]
    lowest = min([low, *(own.low for own in intervals if own)])
    highest = max([high, *(own.high for own in intervals if own)])
    air = AIR * max(highest - lowest, LEAST_REACH * high)
    return max(0.0, lowest - air), highest + 2 * air  # above: room for the names of the changes


def _intervals(case: History, places: Sequence[float]) -> list[Mark]:
    known = [
        (place, interval)
        for place, point in zip(places, case.points, strict=True)
        if (interval := point.interval) is not None
    ]
    return [
        Whiskers(
            "t0",
            opacity=0.4,
            at=[place for place, _ in known],
            low=[interval.low for _, interval in known],
            high=[interval.high for _, interval in known],
        )
    ]


def _levels(case: History, places: Sequence[float]) -> list[Mark]:
    edges = _edges(case, places)
    marks: list[Mark] = []
    if has_too_few(case):
        return marks  # a line would lie where no result is
    for (first, _last, level), (left, right) in zip(case.levels, pairwise(edges), strict=True):
        x, y = [left, right], [level, level]
        if drift := case.drift_from(first):
            x, y = list(places[first : drift.last + 1]), drifting_levels(drift, level)
        marks.append(Line("ink", opacity=0.7, x=x, y=y, width=1.5))
    return marks


def drifting_levels(drift: LevelDrift, level: float) -> list[float]:
    """Return the level at each result of a drift, that in its middle being `level`."""
    shares = (index / (drift.results - 1) - 0.5 for index in range(drift.results))
    return [level * drift.ratio**share for share in shares]


def _edges(case: History, places: Sequence[float]) -> list[float]:
    """Return where levels begin and end: halfway between the results on both sides of a change."""
    between = [(places[marked.index - 1] + places[marked.index]) / 2 for marked in case.changes]
    return [places[0], *between, places[-1]]


def _changes(case: History, across: Axis, places: Sequence[float], top: float) -> list[Mark]:
    marks: list[Mark] = []
    edges = _edges(case, places)[1:-1]
    line, last = 0, -1.0
    for place, marked in zip(edges, case.changes, strict=True):
        tone = "bad" if marked.change.regression else "good"
        marks.append(Line(tone, x=[place, place], y=[0.0, top], width=1.5, dash=True))
        share = across.place(place) or 0.0
        line, last = (line + 1 if share - last < LABEL_ROOM else 0), share
        left = share > RIGHT_SIDE
        marks.append(
            Label(
                tone,
                x=place,
                y=top,
                text=percent_change(marked.change.ratio),
                anchor="end" if left else "start",
                rise=LABEL_LINES[line % len(LABEL_LINES)],
                shift=-LABEL_SHIFT if left else LABEL_SHIFT,
            )
        )
    return marks


def _dots(case: History, places: Sequence[float], link: PointLink) -> list[Mark]:
    """The results without doubts, and as rings those with."""
    marks: list[Mark] = []
    points, unit = case.points, case.rate_unit
    for doubtful in (False, True):
        own = [index for index, point in enumerate(points) if bool(point.doubts) == doubtful]
        if own:
            marks.append(
                Dots(
                    "t0",
                    x=[places[index] for index in own],
                    y=[points[index].median for index in own],
                    texts=[point_text(points[index], unit, case.change_at(index)) for index in own],
                    links=[link(case, index) for index in own] if link(case, own[0]) else (),
                    shape="ring" if doubtful else "dot",
                    radius=_radius(len(places)),
                )
            )
    return marks


def _radius(count: int) -> float:
    return 4 if count <= MANY_POINTS else 3 if count <= 2 * MANY_POINTS else 2.2


def point_text(point: RunPoint, unit: str, marked: MarkedChange | None) -> str:
    """`2026-11-02 04:10, nightly-41: 1,234 images/s [1,230, 1,240]`, and the change that begins there."""
    interval = f" {number.interval(point.interval)}" if point.interval else ""
    change = f", {percent_change(marked.change.ratio)}" if marked else ""
    rate = f"{number.throughput(point.median)} {unit}"
    return f"{date_time(point.time)}, {point.run}: {rate}{interval}{change}"


def _order_axis(case: History, by: str) -> Axis:
    """One place a result, named where the date or the fact changes, as far as there is room."""
    fact = ORDER_FACTS.get(by, "")
    names = [
        fact_text(fact, point.facts.get(fact), "") if fact else date(point.time) for point in case.points
    ]
    firsts = [index for index, name in enumerate(names) if index == 0 or name != names[index - 1]]
    stride = -(-len(firsts) // MOST_TICKS)
    ticks = tuple((float(index), names[index]) for index in firsts[::stride])
    return Axis(-0.5, len(names) - 0.5, ticks, title=ORDERS[by] if fact else _("results in order"))


@dataclass(frozen=True)
class _Spark:
    """Where results lie in a sparkline."""

    low: float
    high: float
    count: int

    def at(self, index: int, value: float) -> str:
        across = 3 + (SPARK_WIDTH - 6) * (index / (self.count - 1) if self.count > 1 else 0.5)
        up = (value - self.low) / (self.high - self.low)
        return f"{across:.1f},{3 + (SPARK_HEIGHT - 6) * (1 - up):.1f}"


def spark(case: History) -> str:
    """Return a small SVG of all results, those that begin a new level as dots."""
    values = [point.median for point in case.points]
    low, high = min(values), max(values)
    reach = max(high - low, LEAST_REACH * high)
    middle = (low + high) / 2
    place = _Spark(middle - reach / 2, middle + reach / 2, len(values))
    line = " ".join(place.at(index, value) for index, value in enumerate(values))
    parts = [f'<polyline points="{line}"/>' if len(values) > 1 else ""]
    ends = [
        (len(values) - 1, "last"),
        *((m.index, "bad" if m.change.regression else "good") for m in case.changes),
    ]
    for index, look in ends:
        x, y = place.at(index, values[index]).split(",")
        parts.append(f'<circle class="{look}" cx="{x}" cy="{y}" r="2.6"/>')
    box = f'width="{SPARK_WIDTH}" height="{SPARK_HEIGHT}" viewBox="0 0 {SPARK_WIDTH} {SPARK_HEIGHT}"'
    return f'<svg class="spark" {box} aria-hidden="true">{"".join(parts)}</svg>'


HOUR, DAY = 3600, 86_400
TIME_AIR = 0.03
MOST_TIME_TICKS = 7
STEPS = (HOUR // 4, HOUR, 3 * HOUR, 6 * HOUR, 12 * HOUR, DAY, 2 * DAY, 4 * DAY, 7 * DAY, 14 * DAY)
MONTHS = (1, 2, 3, 6, 12, 24, 60, 120)
MONTH = 30.44 * DAY


def time_axis(times: Sequence[float]) -> Axis:
    """Return an axis from the first to the last time, with a little room at both ends."""
    first, last = min(times), max(times)
    span = max(last - first, float(HOUR))
    low, high = first - TIME_AIR * span, max(last, first) + TIME_AIR * span
    return Axis(low, high, tuple(_ticks(low, high)))


def _ticks(low: float, high: float) -> list[Tick]:
    for step in STEPS:
        if (high - low) / step <= MOST_TIME_TICKS:
            first = -(-low // step) * step
            count = int((high - first) // step) + 1
            return [_tick(first + step * place, step) for place in range(count)]
    months = next(
        (count for count in MONTHS if (high - low) / (count * MONTH) <= MOST_TIME_TICKS), MONTHS[-1]
    )
    return _month_ticks(low, high, months)


def _tick(time: float, step: float) -> Tick:
    form = "%m-%d %H:%M" if step < DAY else "%Y-%m-%d"
    return time, datetime.fromtimestamp(time, timezone.utc).strftime(form)


def _month_ticks(low: float, high: float, months: int) -> list[Tick]:
    year = datetime.fromtimestamp(low, timezone.utc).year
    ticks, month = [], datetime(year - year % max(1, months // 12), 1, 1, tzinfo=timezone.utc)
    while month.timestamp() <= high:
        if month.timestamp() >= low:
            ticks.append((month.timestamp(), month.strftime("%Y" if months >= 12 else "%Y-%m")))
        for _month in range(months):
            month = (month + timedelta(days=32)).replace(day=1)
    return ticks
