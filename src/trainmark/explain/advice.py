"""What to do first: causes that the profile shows, then what could be better, each by what it would give."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from trainmark.explain.explanation import Advice, CollectiveBucket, IdleTime, WhatIf
from trainmark.explain.what_if.change import milliseconds, percent
from trainmark.explain.what_if.situation import (
    COMMUNICATION,
    LAUNCH,
    LOADER,
    OPTIMIZER,
    SYNCHRONIZATION,
    Situation,
)
from trainmark.view.message import Message, _, joined

LEAST_GAIN = 1.0  # percent: less is no reason to change anything
# Shares of a step from which on something is a cause, not a trifle.
LAUNCH_BOUND, WAITING, EXPOSED = 0.10, 0.03, 0.05
# A link is slow that reaches less than this share of the fabric's bandwidth, or less than 10 Gbit/s.
SLOW_SHARE, SLOW_RATE = 0.5, 1.25e9
LINK = "link"


@dataclass(frozen=True)
class AdviceEvidence:
    """The parts of an explanation that advice is made of; `clocks` is what the run says of throttling."""

    situation: Situation
    what_ifs: Sequence[WhatIf]
    idle: Sequence[IdleTime] = ()
    buckets: Sequence[CollectiveBucket] = ()
    clocks: str | None = None

    def shown_by(self, cause: str) -> tuple[str, ...]:
        """What the profile names for an idle cause: calls, lines, counts."""
        return next((idle.evidence for idle in self.idle if idle.cause == cause), ())


@dataclass(frozen=True)
class StepCause:
    """Something that is wrong: what-ifs that mend it, the best first, whether it is shown, and a sentence."""

    name: str
    changes: tuple[str, ...]
    is_shown: Callable[[AdviceEvidence], bool]
    sentence: Callable[[AdviceEvidence], str]


def diagnose(evidence: AdviceEvidence) -> tuple[Advice, ...]:
    """Return advice with its gain in percent of the throughput: causes first, then improvements, by gain.

    A cause is what the profile shows to be wrong (the device waits, converts layouts, runs without its tensor
    cores, or below its clock); an improvement is what any program could try. Gaps that follow from a more
    special cause are not counted for the general one: an optimiser of a thousand launches is not advised as a
    launch-bound step.
    """
    what_ifs = {what_if.name: what_if for what_if in evidence.what_ifs}
    causes, used = [], set()
    for cause in CAUSES:
        what_if = next((what_ifs[name] for name in cause.changes if name in what_ifs), None)
        if what_if is not None and cause.is_shown(evidence):
            causes.append(_advice(cause.name, cause.sentence(evidence), what_if, evidence))
            used.add(what_if.name)
    causes = [advice for advice in causes if advice.gain >= LEAST_GAIN]
    rank = {advice.cause: _gain_to_rank_by(advice, evidence, causes) for advice in causes}
    causes.sort(key=lambda advice: -rank[advice.cause])
    improvements = [
        _advice(name, sentence, what_ifs[name], evidence)
        for name, sentence in IMPROVEMENTS.items()
        if name in what_ifs and name not in used
    ]
    if "graph" in used or "graph" in what_ifs:
        improvements = [advice for advice in improvements if advice.cause != "no launch gaps"]
    improvements = [advice for advice in improvements if advice.gain >= LEAST_GAIN]
    return (*causes, *sorted(improvements, key=lambda advice: -advice.gain))


def _advice(cause: str, sentence: str, what_if: WhatIf, evidence: AdviceEvidence) -> Advice:
    step = evidence.situation.step
    # The best case of the step is the highest gain.
    gain, low, high = (100 * (step / seconds - 1) for seconds in (what_if.seconds, what_if.high, what_if.low))
    measured = what_if.verified
    if measured is not None:
        gain, low, high = (
            100 * (step / seconds - 1) for seconds in (measured.seconds, measured.high, measured.low)
        )
    how, is_line = what_if.how, what_if.is_line
    if cause == SYNCHRONIZATION and (calls := evidence.shown_by(SYNCHRONIZATION)):
        how, is_line = _("take {call} out of the step, or do it every hundred steps", call=calls[0]), False
    return Advice(cause, sentence, gain, low, high, how, is_line)


def _gain_to_rank_by(advice: Advice, evidence: AdviceEvidence, causes: Sequence[Advice]) -> float:
    """The gain, for a launch-bound step without the gaps of an optimiser that is advised on its own."""
    situation = evidence.situation
    optimiser = situation.part(OPTIMIZER)
    has_own_advice = any(other.cause == OPTIMIZER for other in causes)
    if advice.cause != LAUNCH or not has_own_advice or optimiser is None or not situation.launches:
        return advice.gain
    others = 1 - optimiser.launches / situation.launches
    saved = situation.step - situation.step / (1 + advice.gain / 100)
    return 100 * (situation.step / (situation.step - saved * others) - 1)


def _share(evidence: AdviceEvidence, seconds: float) -> float:
    return seconds / evidence.situation.step if evidence.situation.step else 0.0


def _idle_share(evidence: AdviceEvidence, cause: str) -> float:
    return _share(evidence, evidence.situation.idle_for(cause))


def _loader_sentence(evidence: AdviceEvidence) -> Message:
    share = percent(_idle_share(evidence, LOADER))
    clause = _("The device waits for the next batch for {share} of the step", share=share)
    if evidence.situation.device == "cpu":
        clause = _("The training waits for the next batch for {share} of the step", share=share)
    return _with_calls(clause, evidence, LOADER)


def _synchronization_sentence(evidence: AdviceEvidence) -> Message:
    share = percent(_idle_share(evidence, SYNCHRONIZATION))
    clause = _("The device waits because the host synchronises with it for {share} of the step", share=share)
    return _with_calls(clause, evidence, SYNCHRONIZATION)


def _launch_sentence(evidence: AdviceEvidence) -> Message:
    share = percent(_idle_share(evidence, LAUNCH))
    clause = _("The device waits for the host to launch kernels for {share} of the step", share=share)
    if evidence.situation.device == "cpu":
        clause = _("Python between operators takes {share} of the step", share=share)
    return _with_calls(clause, evidence, LAUNCH)


def _with_calls(clause: Message, evidence: AdviceEvidence, cause: str) -> Message:
    calls = evidence.shown_by(cause)[:2]
    if not calls:
        return _("{clause}.", clause=clause)
    return _("{clause} ({evidence}).", clause=clause, evidence=joined(calls, _("; ")))


def _is_float32(evidence: AdviceEvidence) -> bool:
    """Whether products run in float32 on a device whose bfloat16 is at least twice as fast."""
    situation = evidence.situation
    now = situation.settings.precision
    half, own = situation.product_peak("bf16"), situation.product_peak(now) if now else None
    return now in ("fp32", "tf32") and bool(half and own and half >= 1.5 * own)


def _float32_sentence(evidence: AdviceEvidence) -> str:
    situation = evidence.situation
    now = situation.settings.precision or ""
    half, own = situation.product_peak("bf16") or 0.0, situation.product_peak(now) or 1.0
    return _(
        "Products run in {precision}; this device multiplies bfloat16 {times} times as fast.",
        precision=now,
        times=f"{half / own:.1f}",
    )


def _layout_sentence(evidence: AdviceEvidence) -> str:
    seconds = sum(part.layout_copies for part in evidence.situation.parts)
    share = percent(_share(evidence, seconds))
    return _("Kernels that only change NCHW to NHWC and back take {share} of the step.", share=share)


def _optimizer_sentence(evidence: AdviceEvidence) -> str:
    part = evidence.situation.part(OPTIMIZER)
    launches, seconds = (part.launches, part.alone) if part else (0.0, 0.0)
    values = {"count": f"{launches:.0f}", "time": milliseconds(seconds)}
    if evidence.situation.device == "cpu":
        return _("The optimiser takes {count} operators and {time} a step: it is not fused.", **values)
    return _("The optimiser takes {count} launches and {time} a step: it is not fused.", **values)


def _link_sentence(evidence: AdviceEvidence) -> str:
    share = percent(_share(evidence, evidence.situation.exposed))
    reached, link = _bandwidth(evidence), evidence.situation.peaks.link
    clause = _("Communication that nothing hides takes {share} of the step", share=share)
    if reached:
        clause = _("{clause} at {speed} GB/s", clause=clause, speed=f"{reached / 1e9:.3g}")
    if link:
        limit = _("where the fabric gives {limit}", limit=f"{link / 1e9:.3g}")
        clause = _("{first}, {more}", first=clause, more=limit)
    return _("{clause}.", clause=clause)


def _is_exposed(evidence: AdviceEvidence) -> bool:
    return _share(evidence, evidence.situation.exposed) >= EXPOSED


def _is_slow_link(evidence: AdviceEvidence) -> bool:
    """Whether transfers are slow rather than badly placed; unknown bandwidths are taken for slow ones."""
    reached, link = _bandwidth(evidence), evidence.situation.peaks.link
    return not reached or not link or reached < max(SLOW_SHARE * link, SLOW_RATE)


def _bandwidth(evidence: AdviceEvidence) -> float | None:
    """Bytes/s over all buckets that know theirs, the larger weigh more."""
    known = [(bucket.bandwidth, bucket.seconds) for bucket in evidence.buckets if bucket.bandwidth]
    seconds = sum(weight for _rate, weight in known)
    return sum(rate * weight for rate, weight in known) / seconds if seconds else None


def _shows_layout_copies(evidence: AdviceEvidence) -> bool:
    return any(part.layout_copies for part in evidence.situation.parts)


CAUSES = (
    StepCause(
        LOADER,
        ("free loader",),
        lambda evidence: _idle_share(evidence, LOADER) >= WAITING,
        _loader_sentence,
    ),
    StepCause(
        SYNCHRONIZATION,
        ("no synchronisation",),
        lambda evidence: _idle_share(evidence, SYNCHRONIZATION) >= WAITING / 3,
        _synchronization_sentence,
    ),
    StepCause(
        LAUNCH,
        ("graph", "no launch gaps", "no Python"),
        lambda evidence: _idle_share(evidence, LAUNCH) >= LAUNCH_BOUND,
        _launch_sentence,
    ),
    StepCause("layout", ("channels last",), _shows_layout_copies, _layout_sentence),
    StepCause("precision", ("bf16",), _is_float32, _float32_sentence),
    StepCause(OPTIMIZER, ("fused optimiser",), lambda evidence: True, _optimizer_sentence),
    StepCause(
        LINK,
        ("link ×2",),
        lambda evidence: _is_exposed(evidence) and _is_slow_link(evidence),
        _link_sentence,
    ),
    StepCause(
        COMMUNICATION,
        ("communication hidden",),
        lambda evidence: _is_exposed(evidence) and not _is_slow_link(evidence),
        _link_sentence,
    ),
    StepCause(
        "clocks",
        ("full clock",),
        lambda evidence: True,
        lambda evidence: evidence.clocks or _("The device runs below its highest clock."),
    ),
)

IMPROVEMENTS = {
    "compile": _("A compiler fuses chains of elementwise operations and normalisations."),
    "graph": _("A captured step needs no launches."),
    "no launch gaps": _("The device waits for the host between kernels."),
    "largest batch": _("A larger batch shares what does not grow with it among more samples."),
    "batch ×2": _("A larger batch shares what does not grow with it among more samples."),
    "channels last": _("Convolutions read channels last."),
    "bf16": _("bfloat16 takes half of the bytes."),
    "communication hidden": _("Communication could run while gradients are computed."),
}
