"""Values of a history as people read them: changes in per cent, dates, sparklines, facts."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from functools import lru_cache

from trainmark.measure.history.changes import FEWEST_RESULTS, LevelChange, LevelDrift
from trainmark.measure.history.facts import FactChange, parts_only_in
from trainmark.measure.history.series import RunPoint
from trainmark.measure.statistics import CONFIDENCE, ratio_interval
from trainmark.pages.facts import fact_title
from trainmark.pages.history import SEVERE, History, mostly_unreliable
from trainmark.view.message import Message, _, _n

BLOCKS = "▁▂▃▄▅▆▇█"
UP, DOWN = "↑", "↓"
NOT_RECORDED = _("not recorded")
RISING, FALLING = "↗", "↘"
MOST_BLOCKS = 24
COMMIT_DIGITS = 10
DAY = 86_400
SMALL_CHANGE = 0.0095
CLOSE_BOUNDS = 0.003
# Blocks span at least this share of the median, so that noise does not look like a change.
LEAST_REACH = 0.04


def percent_change(ratio: float) -> str:
    """`−4.2 %`; two decimals below one per cent."""
    return f"{_signed(ratio, 2 if abs(ratio - 1) < SMALL_CHANGE else 1)} %"


def change_bounds(change: LevelChange | LevelDrift) -> str:
    """`[−4.8, −3.6]`, in per cent; two decimals where one would not tell the bounds apart."""
    decimals = 2 if change.high - change.low < CLOSE_BOUNDS or abs(change.ratio - 1) < SMALL_CHANGE else 1
    return f"[{_signed(change.low, decimals)}, {_signed(change.high, decimals)}]"


def _signed(ratio: float, decimals: int) -> str:
    return f"{100 * (ratio - 1):+.{decimals}f}".replace("-", "−")


def probability(value: float) -> str:
    return "< 0.0001" if value < 1e-4 else f"{value:.2g}"


def date(time: float) -> str:
    return _date(time // DAY)


def date_time(time: float) -> str:
    day, seconds = divmod(time, DAY)
    hours, minutes = divmod(int(seconds) // 60, 60)
    return f"{_date(day)} {hours:02d}:{minutes:02d}"


@lru_cache(maxsize=4096)
def _date(day: float) -> str:
    """Return the date of a day since 1970, in UTC; many results are of the same days."""
    return datetime.fromtimestamp(day * DAY, timezone.utc).date().isoformat()


def arrow(change: LevelChange | LevelDrift) -> str:
    if isinstance(change, LevelDrift):
        return FALLING if change.regression else RISING
    return DOWN if change.regression else UP


def sparkline(history: History, most: int = MOST_BLOCKS) -> str:
    """Return all results as blocks, an arrow before each that begins a new level.

    Of more results than there are blocks, neighbours share one, the median of theirs; a change begins a new
    block. All blocks have one scale, from the lowest to the highest, or wider.
    """
    size = -(-len(history.points) // most)
    parts: list[tuple[str, float]] = []
    for first, last, _level in history.levels:
        marked = history.change_at(first)
        for start in range(first, last + 1, size):
            members = history.points[start : min(start + size, last + 1)]
            mark = arrow(marked.change) if marked and start == first else ""
            parts.append((mark, statistics.median(point.median for point in members)))
    shown = blocks([value for _, value in parts])
    return "".join(mark + block for (mark, _), block in zip(parts, shown, strict=True))


def blocks(values: Sequence[float]) -> list[str]:
    low, high = min(values), max(values)
    middle = (low + high) / 2
    reach = max(high - low, LEAST_REACH * abs(middle)) or 1.0
    places = (0.5 + (value - middle) / reach for value in values)
    return [BLOCKS[min(len(BLOCKS) - 1, int(place * len(BLOCKS)))] for place in places]


def fact_text(name: str, value: str | None, missing: str) -> str:
    """Return the value of a fact; of a commit its first digits."""
    if value is None:
        return missing
    return value[:COMMIT_DIGITS] if name == "commit" else value


def fact_texts(fact: FactChange, missing: str) -> tuple[str, str]:
    """Return the values before and after; of a command the words that only one of them has."""
    before, after = (fact_text(fact.name, value, missing) for value in (fact.before, fact.after))
    if fact.name == "command" and fact.before and fact.after:
        return (
            " ".join(["…", *parts_only_in(before, after)]),
            " ".join(["…", *parts_only_in(after, before)]),
        )
    return before, after


def fact_words(fact: FactChange) -> Message:
    """`driver 550.54 → 560.28`."""
    before, after = fact_texts(fact, NOT_RECORDED)
    return _("{fact} {before} → {after}", fact=fact_title(fact.name), before=before, after=after)


@dataclass(frozen=True)
class NoChangeVerdict:
    """`look` is that of a verdict: reliable, caution, or note where there are too few results to tell.

    `last` is the difference of the last result from the one before in a few words, where it is worth telling.
    """

    look: str
    sentence: Message
    last: str


def has_too_few(case: History) -> bool:
    """Return whether no level can be told, for want of results."""
    return len(case.points) < FEWEST_RESULTS and not case.changes and not case.drifts


def no_change_verdict(case: History) -> NoChangeVerdict:
    """Return what holds where no change and no drift was found: none is there, or it cannot be told."""
    points = case.points
    enough = len(points) >= FEWEST_RESULTS
    if enough:
        start = _("No lasting change: the results vary by no more than their trials and days explain")
    else:
        start = _n(
            len(points),
            "1 result: too few for a change of level ({needed} are needed)",
            "{count} results: too few for a change of level ({needed} are needed)",
            needed=FEWEST_RESULTS,
        )
    if enough and mostly_unreliable(points):
        unreliable = _("{start}, but half of them or more are not to be relied on.", start=start)
        return NoChangeVerdict("caution", unreliable, "")
    if len(points) < 2 or (enough and not _stands_out(points)):
        return NoChangeVerdict("reliable" if enough else "note", _("{sentence}.", sentence=start), "")
    before, after = points[-2:]
    certainty = _certainty(before, after)
    last = _last(certainty, percent_change(after.median / before.median))
    look = "note" if certainty == "open" and not enough else "caution"
    differs = _("{start}; the last differs from the one before by {last}.", start=start, last=last)
    return NoChangeVerdict(look, differs, last)


def _last(certainty: str, ratio: str) -> Message:
    if certainty == "certain":
        return _("{ratio}, certain", ratio=ratio)
    if certainty == "doubtful":
        return _("{ratio}, but not both are to be relied on", ratio=ratio)
    return _("{ratio}, not certain", ratio=ratio)


def _stands_out(points: tuple[RunPoint, ...]) -> bool:
    """Return whether the last result certainly differs from the one before and lies outside of all others."""
    others = [point.median for point in points[:-1]]
    outside = not min(others) <= points[-1].median <= max(others)
    return outside and _certainty(*points[-2:]) != "open"


def _certainty(before: RunPoint, after: RunPoint) -> str:
    """Return `certain`, `doubtful` where a side is not to be relied on, or `open`: the trials do not tell."""
    bounds = ratio_interval(after.values, before.values)
    if bounds is None or bounds.confidence < CONFIDENCE or bounds.low <= 1 <= bounds.high:
        return "open"
    return "certain" if SEVERE.isdisjoint((*before.doubts, *after.doubts)) else "doubtful"
