"""What can be wrong with a result over trials, and the doubts of its trials gathered into one each."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Iterator, Sequence

from trainmark.measure.doubt import Doubt, DoubtCode, doubt, of_trials
from trainmark.measure.figure import Ratio
from trainmark.measure.trial.doubts import DATA_BOUND_SHARE, data_doubts

# The fewest trials whose order statistics bound the median at 95 %.
ENOUGH_TRIALS = 6

# Half of the trials farther apart than this hide the differences of a few per cent that are asked about;
# well-kept machines repeat within 0.5 %.
NOISY_SPREAD = 0.03

# Weak scaling cannot beat the single device but for measurement error and cache effects of this order.
SUPERLINEAR_EFFICIENCY = 1.02

# What following the advice of a doubt depends on must be that of the worst trial.
WORSE_BY = {DoubtCode.WARMUP_PAST_WINDOW: "first", DoubtCode.HOST_BUSY: "share"}

# Below this, adding devices mostly adds waiting.
COLLAPSED_EFFICIENCY = 0.6


def trials_doubts(throughputs: Sequence[float], failed: int, environments: int) -> Iterator[Doubt]:
    n = len(throughputs)
    if n < ENOUGH_TRIALS:
        yield doubt(DoubtCode.FEW_TRIALS, "one" if n == 1 else "", n=n, enough=ENOUGH_TRIALS)
    if (spread := relative_spread(throughputs)) > NOISY_SPREAD:
        yield doubt(DoubtCode.NOISY_TRIALS, spread=f"{100 * spread:.1f} %")
    if failed:
        yield doubt(DoubtCode.FAILED_TRIALS, failed=failed, n=n + failed)
    if environments > 1:
        yield doubt(DoubtCode.MIXED_ENVIRONMENT, environments=environments)


def scaling_doubts(efficiency: Ratio, devices: int) -> Iterator[Doubt]:
    surely = efficiency.interval.low if efficiency.interval else efficiency.value
    values = {"devices": devices, "efficiency": f"{efficiency.value:.0%}"}
    if surely > SUPERLINEAR_EFFICIENCY:
        yield doubt(DoubtCode.SUPERLINEAR, **values)
    if efficiency.value < COLLAPSED_EFFICIENCY:
        yield doubt(DoubtCode.COLLAPSED_SCALING, **values)


def synthetic_doubts(share: Ratio, own: float, synthetic: float, unit: str, wait: float) -> Iterator[Doubt]:
    """`share` is what real data leave of the throughput on synthetic ones, `wait` the share of data wait."""
    surely = share.interval is None or share.interval.high < 1
    if 1 - share.value > DATA_BOUND_SHARE and surely:
        lost = 1 - share.value
        yield doubt(
            DoubtCode.DATA_BOUND,
            "waiting" if wait > lost / 2 else "contending",
            lost=f"{lost:.0%}",
            own=_rate(own),
            synthetic=_rate(synthetic),
            unit=unit,
            wait=f"{wait:.1%}",
        )


def _rate(value: float) -> str:
    return f"{value:,.0f}" if value >= 1000 else f"{value:.4g}"


def merged(doubts_of_trials: Sequence[Iterable[Doubt]], wait: float | None = None) -> Iterator[Doubt]:
    """One doubt for each code, with the message of the worst trial that has it and in how many it is.

    `wait` is the result's own share of waiting, where it is known: that is the one that is told.
    """
    gathered: dict[DoubtCode, list[Doubt]] = {}
    for doubts in doubts_of_trials:
        for each in doubts:
            gathered.setdefault(each.code, []).append(each)
    if wait is not None and DoubtCode.DATA_BOUND in gathered:
        count = len(gathered.pop(DoubtCode.DATA_BOUND))
        gathered[DoubtCode.DATA_BOUND] = list(data_doubts(wait)) * count
    for alike in filter(None, gathered.values()):
        yield of_trials(max(alike, key=_extent), len(alike), len(doubts_of_trials))


def _extent(doubt: Doubt) -> float:
    """The number that makes one doubt worse than another of its code; 0 where there is none."""
    text = dict(doubt.values).get(WORSE_BY.get(doubt.code, ""), "").rstrip("%")
    return float(text) if text.replace(".", "", 1).isdecimal() else 0.0


def relative_spread(values: Sequence[float]) -> float:
    """The interquartile range over the median."""
    if len(values) < 2:
        return 0.0
    low, median, high = statistics.quantiles(values, n=4, method="inclusive")
    return (high - low) / median
