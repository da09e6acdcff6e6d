"""What can be wrong with a result over trials, and the doubts of its trials gathered into one each."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Iterator, Sequence

from trainmark.measure.doubt import Doubt, DoubtCode
from trainmark.measure.figure import Ratio
from trainmark.measure.trial.doubts import DATA_BOUND_SHARE

# The fewest trials whose order statistics bound the median at 95 %.
ENOUGH_TRIALS = 6

# Half of the trials farther apart than this hide the differences of a few per cent that are asked about;
# well-kept machines repeat within 0.5 %.
NOISY_SPREAD = 0.03

# Weak scaling cannot beat the single device but for measurement error and cache effects of this order.
SUPERLINEAR_EFFICIENCY = 1.02

# Below this, adding devices mostly adds waiting.
COLLAPSED_EFFICIENCY = 0.6


def trials_doubts(throughputs: Sequence[float], failed: int, environments: int) -> Iterator[Doubt]:
    n = len(throughputs)
    if n < ENOUGH_TRIALS:
        counted = "1 trial is" if n == 1 else f"{n} trials are"
        yield Doubt(
            DoubtCode.FEW_TRIALS,
            f"{counted} too few for a 95 % interval. Run at least {ENOUGH_TRIALS}.",
        )
    if (spread := relative_spread(throughputs)) > NOISY_SPREAD:
        yield Doubt(
            DoubtCode.NOISY_TRIALS,
            f"Trials vary by {100 * spread:.1f} % (interquartile range over median). "
            "Stop other work on this machine, or add trials.",
        )
    if failed:
        yield Doubt(
            DoubtCode.FAILED_TRIALS,
            f"{failed} of {n + failed} trials failed and are not in the figure. Read their logs first.",
        )
    if environments > 1:
        yield Doubt(
            DoubtCode.MIXED_ENVIRONMENT,
            f"The trials ran in {environments} different environments. Run all of them in one.",
        )


def scaling_doubts(efficiency: Ratio, devices: int) -> Iterator[Doubt]:
    surely = efficiency.interval.low if efficiency.interval else efficiency.value
    if surely > SUPERLINEAR_EFFICIENCY:
        yield Doubt(
            DoubtCode.SUPERLINEAR,
            f"{devices} devices reach {efficiency.value:.0%} of linear scaling, which is more than linear. "
            "Check the one-device baseline, and whether samples are counted per rank.",
        )
    if efficiency.value < COLLAPSED_EFFICIENCY:
        yield Doubt(
            DoubtCode.COLLAPSED_SCALING,
            f"{devices} devices reach only {efficiency.value:.0%} of linear scaling. "
            "Check the links between them, and the per-device batch.",
        )


def synthetic_doubts(share: Ratio, own: float, synthetic: float, unit: str, wait: float) -> Iterator[Doubt]:
    """`share` is what real data leave of the throughput on synthetic ones, `wait` the share of data wait."""
    surely = share.interval is None or share.interval.high < 1
    if 1 - share.value > DATA_BOUND_SHARE and surely:
        lost = 1 - share.value
        if wait > lost / 2:
            why = f"steps waited for data {wait:.1%} of the time: raise `workers`, or take a faster `loader`."
        else:
            why = (
                "steps hardly waited for it, so the loader takes cores or device time from the training: "
                "lower `workers`, or take a `loader` that works elsewhere."
            )
        rates = f"{_rate(own)} {unit}/s, {_rate(synthetic)} on synthetic data"
        yield Doubt(DoubtCode.DATA_BOUND, f"It loses {lost:.0%} to its data: {rates}; {why}")


def _rate(value: float) -> str:
    return f"{value:,.0f}" if value >= 1000 else f"{value:.4g}"


def merged(doubts_of_trials: Sequence[Iterable[Doubt]]) -> Iterator[Doubt]:
    """One doubt for each code, with the message of the first trial that has it and in how many it is."""
    gathered: dict[DoubtCode, list[str]] = {}
    for doubts in doubts_of_trials:
        for doubt in doubts:
            gathered.setdefault(doubt.code, []).append(doubt.message)
    for code, messages in gathered.items():
        yield Doubt(code, f"In {len(messages)} of {len(doubts_of_trials)} trials: {messages[0]}")


def relative_spread(values: Sequence[float]) -> float:
    """The interquartile range over the median."""
    if len(values) < 2:
        return 0.0
    low, median, high = statistics.quantiles(values, n=4, method="inclusive")
    return (high - low) / median
