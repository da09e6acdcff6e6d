"""An axis of time with ticks at round hours, days, months or years, in UTC."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta, timezone

from trainmark.view.chart.axis import Axis, Tick

HOUR, DAY = 3600, 86_400
AIR = 0.03
MOST_TICKS = 7
STEPS = (HOUR // 4, HOUR, 3 * HOUR, 6 * HOUR, 12 * HOUR, DAY, 2 * DAY, 4 * DAY, 7 * DAY, 14 * DAY)
MONTHS = (1, 2, 3, 6, 12, 24, 60, 120)
MONTH = 30.44 * DAY


def time_axis(times: Sequence[float]) -> Axis:
    """Return an axis from the first to the last time, with a little room at both ends."""
    first, last = min(times), max(times)
    span = max(last - first, float(HOUR))
    low, high = first - AIR * span, max(last, first) + AIR * span
    return Axis(low, high, tuple(_ticks(low, high)))


def _ticks(low: float, high: float) -> list[Tick]:
    for step in STEPS:
        if (high - low) / step <= MOST_TICKS:
            first = -(-low // step) * step
            count = int((high - first) // step) + 1
            return [_tick(first + step * place, step) for place in range(count)]
    months = next((count for count in MONTHS if (high - low) / (count * MONTH) <= MOST_TICKS), MONTHS[-1])
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
        for _ in range(months):
            month = (month + timedelta(days=32)).replace(day=1)
    return ticks
