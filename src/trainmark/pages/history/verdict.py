"""What the results of a case without a change of level allow to say, in one sentence."""

from __future__ import annotations

from dataclasses import dataclass

from trainmark.measure.history.changes import FEWEST_RESULTS
from trainmark.measure.history.series import RunPoint
from trainmark.measure.statistics import CONFIDENCE, ratio_interval
from trainmark.pages.history.cells import percent_change
from trainmark.pages.history.model import SEVERE, History, mostly_unreliable
from trainmark.view.message import Message, _, _n


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
