"""What the results of a case without a change of level allow to say, in one sentence."""

from __future__ import annotations

from dataclasses import dataclass

from trainmark.measure.history.changes import FEWEST_RESULTS
from trainmark.measure.history.series import RunPoint
from trainmark.measure.statistics import CONFIDENCE, ratio_interval
from trainmark.report.format.words import Lang
from trainmark.report.history.cells import percent_change
from trainmark.report.history.model import SEVERE, History, mostly_unreliable
from trainmark.report.history.words import history_words


@dataclass(frozen=True)
class NoChangeVerdict:
    """`look` is that of a verdict: reliable, caution, or note where there are too few results to tell.

    `last` is the difference of the last result from the one before in a few words, where it is worth telling.
    """

    look: str
    sentence: str
    last: str


def has_too_few(case: History) -> bool:
    """Return whether no level can be told, for want of results."""
    return len(case.points) < FEWEST_RESULTS and not case.changes and not case.drifts


def no_change_verdict(case: History, lang: Lang = "en") -> NoChangeVerdict:
    """Return what holds where no change and no drift was found: none is there, or it cannot be told."""
    w, points = history_words(lang), case.points
    enough = len(points) >= FEWEST_RESULTS
    start = w["no_lasting_change"] if enough else w["too_few_one" if len(points) == 1 else "too_few"]
    start = start.format(count=len(points), needed=FEWEST_RESULTS)
    if enough and mostly_unreliable(points):
        return NoChangeVerdict("caution", w["no_change_unreliable"].format(start=start), "")
    if len(points) < 2 or (enough and not _stands_out(points)):
        return NoChangeVerdict("reliable" if enough else "note", start + w["full_stop"], "")
    before, after = points[-2:]
    name = f"last_{_certainty(before, after)}"
    last = w[name].format(ratio=percent_change(after.median / before.median))
    look = "note" if name == "last_open" and not enough else "caution"
    return NoChangeVerdict(look, w["last_differs"].format(start=start, last=last), last)


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
