"""What can be wrong with the figure of one trial, and with a result over trials.

A trial's doubts are told from its own steps and the samples beside them; a result gathers those of its
trials into one each.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from trainmark.events import DeviceSample
from trainmark.events.ranges import count_in, number_in, text_in, texts_in
from trainmark.events.schema import is_host
from trainmark.measure.breakdown import LongSteps
from trainmark.measure.doubts import Doubt, DoubtCode, doubt, doubt_in_trials
from trainmark.measure.figure import Finish, Ratio, Straggler, Window, WindowVerdict
from trainmark.measure.key import Key
from trainmark.measure.statistics import Floats, relative_spread

# A gap of this size between real and synthetic data is where a loader begins to decide the ranking.
DATA_BOUND_SHARE = 0.03

# Waiting alone names a cause from here on: every loader is waited for a little, and a faster one gains less.
LONG_WAIT_SHARE = 0.10

# Less than this of the time in evaluation mode moves no figure.
EVALUATING_SHARE = 0.02

# Below a tenth, other processes are the ordinary background of a host (monitoring, the sampler itself).
HOST_BUSY_SHARE = 0.10

# Fewer steps than this need not show in the loss: its noise over a handful of batches is larger.
STEPS_FOR_A_FALLING_LOSS = 100
LOSS_SHARE_COMPARED = 0.1

# Tensor cores read reduced precision in channels-last order; NCHW costs a transposition per convolution.
REDUCED_PRECISIONS = frozenset({"amp", "bf16", "fp16"})
CUDA_NAMES = ("nvidia", "cuda", "tesla", "geforce", "quadro")

# What the probe calls the clock of a program that gave it none.
HOST_CLOCK = "host"

# An idle clock is low because nothing runs, not because something holds it down.
HARMLESS_THROTTLE = frozenset({"idle", "none"})

# Large GPUs run at their power limit whenever they work hard; it is news only where it costs this much clock.
POWER_LIMIT = "sw-power-cap"
CLOCK_SHARE_AT_POWER_LIMIT = 0.85


def window_doubts(
    window: Window, floor: int, min_steps: int, variant: str = "", over_by: int | None = None
) -> Iterator[Doubt]:
    """`variant` is `program` for one's own, whose warm-up is an option and no line of a suite.

    `over_by` is where a smaller floor finds the warm-up over. From there on a floor is enough, whatever a
    look at the rest alone would cut, so that the worst trial's advice is enough for all of them.
    """
    if window.verdict is WindowVerdict.NEVER_SETTLED:
        yield doubt(DoubtCode.NEVER_SETTLED, steps=window.stop)
    elif window.steps < min_steps or window.verdict is WindowVerdict.TOO_SHORT:
        yield doubt(DoubtCode.WINDOW_TOO_SHORT, steady=window.steps, steps=window.stop, needed=min_steps)
    over_by = window.first if over_by is None else over_by
    if window.verdict is not WindowVerdict.NEVER_SETTLED and floor < min(window.first, over_by):
        yield doubt(DoubtCode.WARMUP_PAST_WINDOW, variant, floor=floor, first=window.first)


def data_doubts(wait_share: float | None) -> Iterator[Doubt]:
    if wait_share is not None and wait_share > LONG_WAIT_SHARE:
        yield doubt(DoubtCode.DATA_BOUND, wait=f"{wait_share:.1%}")


def sample_doubts(inside: Sequence[DeviceSample]) -> Iterator[Doubt]:
    """Doubts from the device samples taken inside the window."""
    throttled = [sample for sample in inside if throttle_reasons(sample)]
    if throttled:
        reasons = Counter(reason for sample in throttled for reason in throttle_reasons(sample))
        named = ", ".join(reason for reason, _ in reasons.most_common())
        devices = {sample.device for sample in throttled}
        watched = sum(sample.device in devices for sample in inside)
        yield doubt(DoubtCode.THROTTLED, reasons=named, throttled=len(throttled), samples=watched)
    if shared := sorted({s.device for s in inside if s.foreign_processes > 0 and not is_host(s.device)}):
        most = max(s.foreign_processes for s in inside if s.device in shared)
        yield doubt(DoubtCode.DEVICE_SHARED, most=most, devices=", ".join(shared))
    busy, host = max(_foreign_shares(inside), default=(0.0, "cpu"))
    if busy > HOST_BUSY_SHARE:
        node = host.rpartition("/")[0]
        yield doubt(DoubtCode.HOST_BUSY, "node" if node else "", share=f"{busy:.0%}", node=node)


def _foreign_shares(inside: Sequence[DeviceSample]) -> Iterator[tuple[float, str]]:
    """Of each machine the mean over the window: one busy node holds all the others up."""
    for host in sorted({s.device for s in inside if is_host(s.device)}):
        shares = [s.foreign_share for s in inside if s.device == host and s.foreign_share is not None]
        if shares:
            yield sum(shares) / len(shares), host


def throttle_reasons(sample: DeviceSample) -> set[str]:
    """Return what lowers the clocks of this sample; a power limit only where it costs much."""
    reasons = set(sample.throttle) - HARMLESS_THROTTLE
    if reasons == {POWER_LIMIT} and sample.clock_mhz and sample.clock_max_mhz:
        return reasons if sample.clock_mhz < CLOCK_SHARE_AT_POWER_LIMIT * sample.clock_max_mhz else set()
    return reasons


def loss_doubts(losses: Floats, steps: int) -> Iterator[Doubt]:
    bad = int(np.count_nonzero(~np.isfinite(losses)))
    if bad:
        yield doubt(DoubtCode.NAN_LOSS, bad=bad, reports=len(losses))
        return
    compared = int(len(losses) * LOSS_SHARE_COMPARED)
    if steps < STEPS_FOR_A_FALLING_LOSS or compared < 1:
        return
    before, after = float(np.median(losses[:compared])), float(np.median(losses[-compared:]))
    if after >= before:
        yield doubt(DoubtCode.LOSS_NOT_FALLING, before=f"{before:.4g}", after=f"{after:.4g}", steps=steps)


def layout_doubts(key: Key, facts: dict[str, Any]) -> Iterator[Doubt]:
    if key.precision in REDUCED_PRECISIONS and key.layout == "NCHW" and _on_cuda(key, facts):
        yield doubt(DoubtCode.WRONG_LAYOUT, precision=key.precision)


def clock_doubts(key: Key, facts: dict[str, Any], inside: Sequence[DeviceSample]) -> Iterator[Doubt]:
    """A program that is not one of ours may take the time at which the host has queued a step."""
    own_command = key.framework is None
    if facts.get("clock", HOST_CLOCK if own_command else None) != HOST_CLOCK:
        return
    on_gpus = [s.own_memory_bytes for s in inside if not is_host(s.device) and s.own_memory_bytes is not None]
    if any(on_gpus) if on_gpus else _on_cuda(key, facts):
        yield doubt(DoubtCode.HOST_CLOCK)


def fallback_doubts(end_facts: Sequence[dict[str, Any]]) -> Iterator[Doubt]:
    """A rank tells at its end what it could not do as it should."""
    fallbacks = dict.fromkeys(each for facts in end_facts for each in texts_in(facts, "fallbacks"))
    if fallbacks:
        first, more = next(iter(fallbacks)), len(fallbacks) - 1
        yield doubt(DoubtCode.FELL_BACK, "several" if more else "", first=first, more=more)


def untouched_doubts(facts: dict[str, Any], throughput: float, unit: str) -> Iterator[Doubt]:
    """What the hooks or the lines of a program tell, and leave uncertain."""
    if uncounted := count_in(facts, "uncounted_trainings"):
        yield doubt(DoubtCode.TRAINING_UNCOUNTED, count=uncounted)
    if turns := text_in(facts, "unequal_turns"):
        yield doubt(DoubtCode.UNEQUAL_TURNS, turns=turns)
    if bursts := count_in(facts, "line_bursts"):
        yield doubt(DoubtCode.LINES_IN_BURSTS, lines=count_in(facts, "lines_in_bursts"), bursts=bursts)
    share = number_in(facts, "evaluating_share") or 0.0
    if EVALUATING_SHARE < share < 1:
        rate = f"{throughput / (1 - share):,.4g}"
        yield doubt(DoubtCode.EVALUATION_IN_STEPS, share=f"{share:.1%}", rate=rate, unit=unit)


def long_step_doubts(
    long: LongSteps | None, steps: int, seconds: float, samples: float, unit: str
) -> Iterator[Doubt]:
    if long is not None:
        yield doubt(
            DoubtCode.LONG_STEPS,
            "irregular" if long.every is None else "",
            count=long.count,
            steps=steps,
            every=long.every,
            share=f"{long.seconds / seconds:.1%}",
            usual=f"{long.usual_seconds * 1e3:.4g} ms",
            rate=f"{samples / (seconds - long.seconds):,.4g}",
            unit=unit,
        )


def straggler_doubts(stragglers: Sequence[Straggler], separated: bool, unit: str) -> Iterator[Doubt]:
    """`separated`: whether the ranks tell their working from their waiting."""
    for slow in stragglers:
        whole_node = slow.rank is None
        named = slow.node if whole_node else f"{slow.rank} ({slow.node})" if slow.node else slow.rank
        if separated:
            own, others = (f"{seconds * 1e3:.4g} ms" for seconds in (slow.own_seconds, slow.others_seconds))
            variant, seen = "node" if whole_node else "", {"own": own, "others": others}
        else:
            excess = slow.own_seconds / slow.others_seconds - 1
            variant, seen = "late-node" if whole_node else "late", {"excess": f"{excess:.1%}"}
        costs = {"cost": f"{slow.cost:.1%}", "lost": f"{slow.lost:.4g}", "unit": unit}
        yield doubt(DoubtCode.STRAGGLER, variant, place=named, **seen, **costs)


def finish_doubts(finish: Finish, resumptions: Sequence[dict[str, Any]]) -> Iterator[Doubt]:
    """`resumptions` are the facts that rank 0 told at each."""
    if finish.resumed:
        skipped = ", ".join(name for facts in resumptions for name in _skipped_checkpoints(facts))
        yield doubt(
            DoubtCode.RESUMED,
            "damaged" if skipped else "once" if finish.resumed == 1 else "",
            count=finish.resumed,
            skipped=skipped,
            lost=f"{finish.lost_seconds:,.0f}",
        )


def _skipped_checkpoints(facts: dict[str, Any]) -> Iterator[str]:
    skipped = facts.get("checkpoints_skipped")
    for each in skipped if isinstance(skipped, list) else ():
        if isinstance(each, dict):
            yield f"{each.get('name')}: {each.get('reason')}"


def recipe_doubts(facts: dict[str, Any]) -> Iterator[Doubt]:
    """A training tells what it does otherwise than its recipe."""
    if departures := texts_in(facts, "departures"):
        yield doubt(DoubtCode.RECIPE_CHANGED, recipe=facts.get("recipe"), departures="; ".join(departures))


def _on_cuda(key: Key, facts: dict[str, Any]) -> bool:
    name = str(facts.get("device_name") or key.device or "").lower()
    return any(known in name for known in CUDA_NAMES)


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
            own=_rate_text(own),
            synthetic=_rate_text(synthetic),
            unit=unit,
            wait=f"{wait:.1%}",
        )


def _rate_text(value: float) -> str:
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
        yield doubt_in_trials(max(alike, key=_how_bad), len(alike), len(doubts_of_trials))


def _how_bad(doubt: Doubt) -> float:
    """The number that makes one doubt worse than another of its code; 0 where there is none."""
    text = dict(doubt.values).get(WORSE_BY.get(doubt.code, ""), "").rstrip("%")
    return float(text) if text.replace(".", "", 1).isdecimal() else 0.0
