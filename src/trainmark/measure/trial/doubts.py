"""What can be wrong with the figure of one trial, told from its own steps and the samples beside them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from trainmark.events import DeviceSample
from trainmark.events.ranges import texts_in
from trainmark.events.schema import is_host
from trainmark.measure.doubt import Doubt, DoubtCode
from trainmark.measure.figure import Finish, Straggler, Verdict, Window
from trainmark.measure.key import Key
from trainmark.measure.statistics.arrays import Floats

# A gap of this size between real and synthetic data is where a loader begins to decide the ranking.
DATA_BOUND_SHARE = 0.03

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


def window_doubts(window: Window, floor: int, min_steps: int) -> Iterator[Doubt]:
    if window.verdict is Verdict.NEVER_SETTLED:
        yield Doubt(
            DoubtCode.NEVER_SETTLED,
            f"Step times did not settle within {window.stop} steps. "
            "Run more steps, or look for drift in clocks, memory or data.",
        )
    elif window.steps < min_steps or window.verdict is Verdict.TOO_SHORT:
        yield Doubt(
            DoubtCode.WINDOW_TOO_SHORT,
            f"Only {window.steps} of {window.stop} steps are steady; {min_steps} are needed. Run more steps.",
        )
    if window.verdict is not Verdict.NEVER_SETTLED and window.first > floor:
        yield Doubt(
            DoubtCode.WARMUP_PAST_WINDOW,
            f"Still warming up after {floor} steps; {window.first - floor} more were dropped. "
            f"Set warmup.steps to {window.first} or more.",
        )


def data_doubts(wait_share: float | None) -> Iterator[Doubt]:
    if wait_share is not None and wait_share > DATA_BOUND_SHARE:
        yield Doubt(
            DoubtCode.DATA_BOUND,
            f"Steps waited for data {wait_share:.1%} of the time. "
            "Add loader workers, or compare with synthetic data.",
        )


def sample_doubts(inside: Sequence[DeviceSample]) -> Iterator[Doubt]:
    """Doubts from the device samples taken inside the window."""
    throttled = [sample for sample in inside if _throttle_reasons(sample)]
    if throttled:
        reasons = Counter(reason for sample in throttled for reason in _throttle_reasons(sample))
        named = ", ".join(reason for reason, _ in reasons.most_common())
        devices = {sample.device for sample in throttled}
        watched = sum(sample.device in devices for sample in inside)
        yield Doubt(
            DoubtCode.THROTTLED,
            f"Clocks were throttled ({named}) in {len(throttled)} of {watched} samples. "
            "Improve cooling or power, or lock the clocks.",
        )
    if shared := sorted({s.device for s in inside if s.foreign_processes > 0 and not is_host(s.device)}):
        most = max(s.foreign_processes for s in inside if s.device in shared)
        yield Doubt(
            DoubtCode.DEVICE_SHARED,
            f"Other processes (up to {most} at a time) used {', '.join(shared)} during the window. "
            "Stop them and run again.",
        )
    busy, host = max(_foreign_shares(inside), default=(0.0, "cpu"))
    if busy > HOST_BUSY_SHARE:
        whose = f"{node}'s" if (node := host.rpartition("/")[0]) else "the host's"
        yield Doubt(
            DoubtCode.HOST_BUSY,
            f"Other processes used {busy:.0%} of {whose} CPU time in the window. Stop them and run again.",
        )


def _foreign_shares(inside: Sequence[DeviceSample]) -> Iterator[tuple[float, str]]:
    """Of each machine the mean over the window: one busy node holds all the others up."""
    for host in sorted({s.device for s in inside if is_host(s.device)}):
        shares = [s.foreign_share for s in inside if s.device == host and s.foreign_share is not None]
        if shares:
            yield sum(shares) / len(shares), host


def _throttle_reasons(sample: DeviceSample) -> set[str]:
    reasons = set(sample.throttle) - HARMLESS_THROTTLE
    if reasons == {POWER_LIMIT} and sample.clock_mhz and sample.clock_max_mhz:
        return reasons if sample.clock_mhz < CLOCK_SHARE_AT_POWER_LIMIT * sample.clock_max_mhz else set()
    return reasons


def loss_doubts(losses: Floats, steps: int) -> Iterator[Doubt]:
    bad = int(np.count_nonzero(~np.isfinite(losses)))
    if bad:
        yield Doubt(
            DoubtCode.NAN_LOSS,
            f"The loss was not a finite number in {bad} of {len(losses)} reports: "
            "lower the learning rate or check the loss scale.",
        )
        return
    compared = int(len(losses) * LOSS_SHARE_COMPARED)
    if steps < STEPS_FOR_A_FALLING_LOSS or compared < 1:
        return
    before, after = float(np.median(losses[:compared])), float(np.median(losses[-compared:]))
    if after >= before:
        yield Doubt(
            DoubtCode.LOSS_NOT_FALLING,
            f"The loss went from {before:.4g} to {after:.4g} over {steps} steps: "
            "check that the step really trains.",
        )


def layout_doubts(key: Key, facts: dict[str, Any]) -> Iterator[Doubt]:
    if key.precision in REDUCED_PRECISIONS and key.layout == "NCHW" and _on_cuda(key, facts):
        yield Doubt(
            DoubtCode.WRONG_LAYOUT,
            f"{key.precision} ran in NCHW, the slow layout for tensor cores: use layout NHWC.",
        )


def clock_doubts(key: Key, facts: dict[str, Any], inside: Sequence[DeviceSample]) -> Iterator[Doubt]:
    """A program that is not one of ours may take the time at which the host has queued a step."""
    own_command = key.framework is None
    if facts.get("clock", HOST_CLOCK if own_command else None) != HOST_CLOCK:
        return
    on_gpus = [s.own_memory_bytes for s in inside if not is_host(s.device) and s.own_memory_bytes is not None]
    if any(on_gpus) if on_gpus else _on_cuda(key, facts):
        yield Doubt(
            DoubtCode.HOST_CLOCK,
            "The program used a GPU, and its steps were timed by the host, which may only have queued them. "
            'Give probe.start a clock: "cuda" or "jax", or "synchronous" where every step waits for the GPU.',
        )


def fallback_doubts(end_facts: Sequence[dict[str, Any]]) -> Iterator[Doubt]:
    """A rank tells at its end what it could not do as it should."""
    fallbacks = dict.fromkeys(each for facts in end_facts for each in texts_in(facts, "fallbacks"))
    if fallbacks:
        first = next(iter(fallbacks))
        others = f", and {len(fallbacks) - 1} more in the rank's log" if len(fallbacks) > 1 else ""
        yield Doubt(
            DoubtCode.FELL_BACK,
            f"Part of the step was done another way than it should ({first}{others}): "
            "do not take it for the best that the device can do.",
        )


def straggler_doubts(stragglers: Sequence[Straggler], separated: bool, unit: str) -> Iterator[Doubt]:
    """`separated`: whether the ranks tell their working from their waiting."""
    for slow in stragglers:
        place = f"Node {slow.node}" if slow.rank is None else f"Rank {slow.rank}"
        if slow.rank is not None and slow.node is not None:
            place += f" on {slow.node}"
        own, theirs = (f"{seconds * 1e3:.4g} ms" for seconds in (slow.own_seconds, slow.others_seconds))
        lost = f"{slow.cost:.1%} of the throughput ({slow.lost:.4g} {unit}/s)"
        if separated:
            seen = (
                f"{place} holds the others back: its own part of a step takes {own}, theirs {theirs}, "
                f"which costs {lost}"
            )
        else:
            excess = slow.own_seconds / slow.others_seconds - 1
            seen = (
                f"{place} ends its steps later than the others by {excess:.1%} of a step; working and "
                f"waiting cannot be told apart here, so it costs at most {lost}"
            )
        yield Doubt(DoubtCode.STRAGGLER, f"{seen}: check its device, host and link.")


def finish_doubts(finish: Finish, resumptions: Sequence[dict[str, Any]]) -> Iterator[Doubt]:
    """`resumptions` are the facts that rank 0 told at each."""
    if finish.resumed:
        times = "once" if finish.resumed == 1 else f"{finish.resumed} times"
        if skipped := [name for facts in resumptions for name in _skipped_checkpoints(facts)]:
            times += f", past damaged checkpoints ({', '.join(skipped)})"
        yield Doubt(
            DoubtCode.RESUMED,
            f"The training was killed and resumed {times}; its clocks never paused and hold "
            f"{finish.lost_seconds:,.0f} s in which nothing that counts was trained: "
            "run it again in one piece where the time matters.",
        )


def _skipped_checkpoints(facts: dict[str, Any]) -> Iterator[str]:
    skipped = facts.get("checkpoints_skipped")
    for each in skipped if isinstance(skipped, list) else ():
        if isinstance(each, dict):
            yield f"{each.get('name')}: {each.get('reason')}"


def recipe_doubts(facts: dict[str, Any]) -> Iterator[Doubt]:
    """A training tells what it does otherwise than its recipe."""
    if departures := texts_in(facts, "departures"):
        yield Doubt(
            DoubtCode.RECIPE_CHANGED,
            f"The recipe {facts.get('recipe')} was not kept ({'; '.join(departures)}): "
            "compare accuracy and time to train with nothing that kept it.",
        )


def _on_cuda(key: Key, facts: dict[str, Any]) -> bool:
    name = str(facts.get("device_name") or key.device or "").lower()
    return any(known in name for known in CUDA_NAMES)
