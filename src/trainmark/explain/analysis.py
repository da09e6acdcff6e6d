"""From what the ranks of a profiled program left to the explanation of its step."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import fmean

from trainmark.events import DeviceSample
from trainmark.explain import chrome_trace, perfetto
from trainmark.explain.agreement import (
    MOST_DIFFERENCE,
    Slowdown,
    agreement,
    corrected_idle,
    reference_note,
    reference_steps,
    slowdown,
)
from trainmark.explain.breakdown import breakdown, product_peak, with_floors
from trainmark.explain.explanation import Agreement, ClassTime, ExplainedSubject, Explanation, MeasuredPeaks
from trainmark.explain.idle import causes
from trainmark.explain.kernel_classes import classes_of, own_classes
from trainmark.explain.memory import memory, refusal
from trainmark.explain.modules import by_path, modules
from trainmark.explain.operator_cost import Work
from trainmark.explain.perfetto import timeline
from trainmark.explain.profile import Profile
from trainmark.explain.profile_folder import Captured, CapturedRank
from trainmark.explain.ranks import link_evidence as rank_evidence
from trainmark.explain.ranks import ranks as ranks_of
from trainmark.explain.step_work import completed, of_step, with_convolutions
from trainmark.view.message import _

NO_PEAKS = MeasuredPeaks()
MOST_MODULES = 40
MODULE_DEPTH = 4
FLOAT32_BYTES = 4
WHAT_TO_DO = _(
    "For shares, profile on a quiet machine, with more steps (--profile-steps 20) or a larger batch: "
    "operators of a few microseconds cost the profiler as much as they take."
)
WHAT_IS_MISSED = _(
    "What the profile lacks ran where the profiler does not look, or the steps beside it were disturbed: "
    "more steps (--profile-steps 20) tell which."
)
WHAT_WAS_DISTURBED = _(
    "The profile lacks nothing: its steps took as long by the program's own clock, so the steps beside it "
    "were disturbed; profile on a quiet machine."
)
FASTER_THAN_FLOOR = _(
    "A class is faster than its floor: the machine was busier when its peaks were measured at the end, or "
    "caches spared its memory."
)


@dataclass(frozen=True)
class TrialFacts:
    """What is known of a trial beside its profiles; of a trace from elsewhere only the title.

    `samples` are those of a step of all ranks; `work` is one rank's step as its workload declares it, for
    classes whose operands nobody recorded. `product_peaks` are FLOP/s by precision, for a program of which
    nobody said in which one it multiplies. `step_seconds` is the mean of the measured steps, `rate` what they
    gave. `nodes` names the node of each rank, `notes` are what the measured steps tell by themselves,
    `doubts` why not to rely on them.
    """

    title: str
    unit: str = "samples"
    samples: float | None = None
    step_seconds: float | None = None
    framework: str | None = None
    device: str | None = None
    peaks: MeasuredPeaks = NO_PEAKS
    product_peaks: Mapping[str, float] = field(default_factory=dict)
    work: Mapping[str, Work] = field(default_factory=dict)
    device_samples: Sequence[DeviceSample] = ()
    nodes: Sequence[str | None] = ()
    sharded: bool = False
    notes: Sequence[str] = ()
    doubts: Sequence[str] = ()
    rate: float | None = None


@dataclass(frozen=True)
class AnalyzedStep:
    """An explanation without what-ifs and advice, and the profile that it was made from."""

    explanation: Explanation
    profile: Profile
    classes: tuple[str, ...]
    clocks: Slowdown | None

    def write_trace(self, path: Path) -> None:
        """Write the profile as a trace that Perfetto opens, the class of each span with it."""
        perfetto.write(path, self.profile, self.classes)


def explain(captured: Captured, facts: TrialFacts) -> AnalyzedStep:
    """Explain the step of the first rank, and all ranks beside it."""
    first = captured.ranks[0]
    profile, detail = shares_profile(first), first.detail
    classes = with_convolutions(classes_of(profile, detail), profile.spans, facts.work)
    parts = breakdown(profile, classes)
    steps = len(profile.steps)
    idle = causes(profile, parts.gaps, detail)
    busy = parts.busy / steps / 1e9 if steps else 0.0
    beside = reference_steps(first.unprofiled, facts.step_seconds, profile.device, busy)
    agreed = agreement(profile, beside, idle)
    if agreed.corrected and agreed.measured:
        idle = corrected_idle(idle, parts.total - round(agreed.measured * steps * 1e9))
    work = completed(_work(profile, detail, classes, facts.work), facts.work)
    peaks = facts.peaks
    if peaks.flops is None:
        peaks = replace(peaks, flops=product_peak(facts.product_peaks, parts.classes, profile, detail))
    class_times = with_floors(parts.classes, work, peaks, steps)
    clocks = slowdown(facts.device_samples, _arithmetic(class_times))
    world_size = max(first.world_size, profile.world_size)
    explanation = Explanation(
        subject=_subject(first, facts, world_size),
        steps=steps,
        total=parts.busy + sum(row.nanoseconds for row in idle),
        agreement=agreed,
        peaks=peaks,
        classes=class_times,
        overlaps=parts.overlaps,
        idle=idle,
        modules=by_path(modules(detail, _model_names(first)) if detail else (), MODULE_DEPTH)[:MOST_MODULES],
        memory=memory(first.manifest.get("memory"), world_size, facts.sharded),
        timeline=timeline(profile, classes),
        overhead=_overhead(first, beside),
        doubts=tuple(facts.doubts),
        measured_rate=facts.rate,
        facts={name: str(value) for name, value in profile.facts.items() if isinstance(value, str | int)},
    )
    notes = [*captured.notes, *first.notes, *_profile_notes(profile), *_memory_notes(first), *facts.notes]
    if agreed.refusal is not None and agreed.measured is not None:
        notes.insert(0, _remedy(agreed, first.profiled))
    if any(time.floor and time.floor > (1 + MOST_DIFFERENCE) * time.busy for time in class_times):
        notes.append(FASTER_THAN_FLOOR)
    if beside != first.unprofiled:
        notes.append(reference_note(fmean(first.unprofiled), fmean(beside)))
    if clocks is not None:
        notes.append(clocks.sentence)
    if world_size > 1:
        explanation, more = _with_ranks(explanation, captured, facts)
        notes += more
    explanation = replace(explanation, notes=tuple(notes))
    return AnalyzedStep(explanation, profile, classes, clocks)


def captured_trace(path: Path) -> Captured:
    """Take a trace from elsewhere for what one rank left."""
    profile = chrome_trace.read(path)
    rank = CapturedRank(
        rank=profile.rank,
        world_size=profile.world_size,
        framework="",
        device=profile.device,
        device_name=profile.device_name,
        timing=None,
        detail=profile,
        unprofiled=(),
        profiled=(),
        manifest={},
    )
    return Captured((rank,))


def shares_profile(rank: CapturedRank) -> Profile:
    """Return the pass that shares are made from: the one with the least overhead."""
    profile = rank.timing or rank.detail
    if profile is None:
        raise ValueError("a rank without a pass is none that a folder is read for")
    return profile


def _work(
    profile: Profile, detail: Profile | None, classes: Sequence[str], declared: Mapping[str, Work]
) -> dict[str, Work]:
    """Operands are recorded in the detail pass alone; its classes have the same spans."""
    if detail is None:
        return {}
    if detail is not profile:
        classes = with_convolutions(own_classes(detail), detail.spans, declared)
    return of_step(detail, classes, FLOAT32_BYTES)


def _arithmetic(classes: Sequence[ClassTime]) -> int | None:
    bound = [time.alone for time in classes if time.bound == "arithmetic"]
    return sum(bound) if bound else None


def _subject(first: CapturedRank, facts: TrialFacts, world_size: int) -> ExplainedSubject:
    per_rank = first.manifest.get("samples_per_step")
    samples = facts.samples or (per_rank * world_size if isinstance(per_rank, int | float) else None)
    version = first.manifest.get("framework_version")
    framework = facts.framework or " ".join(filter(None, (first.framework, version and str(version))))
    return ExplainedSubject(
        title=facts.title,
        device=facts.device or first.device_name,
        framework=framework or None,
        samples=samples,
        unit=facts.unit,
        world_size=world_size,
        kind=first.device or None,
    )


def _remedy(agreed: Agreement, profiled: Sequence[float]) -> str:
    """Say what to do for shares; `profiled` are the profiled steps by the clock that timed all others."""
    if agreed.profiled > (agreed.measured or 0.0):
        return WHAT_TO_DO
    is_whole = profiled and abs(agreed.profiled / fmean(profiled) - 1) <= MOST_DIFFERENCE
    return WHAT_WAS_DISTURBED if is_whole else WHAT_IS_MISSED


def _model_names(rank: CapturedRank) -> Mapping[str, str]:
    facts = rank.manifest.get("facts")
    names = facts.get("model_names") if isinstance(facts, Mapping) else None
    return {str(key): str(name) for key, name in names.items()} if isinstance(names, Mapping) else {}


def _overhead(rank: CapturedRank, unprofiled: Sequence[float]) -> float | None:
    """How much longer a step of the pass for shares takes than one without the profiler."""
    if not rank.profiled or not unprofiled:
        return None
    return fmean(rank.profiled) / fmean(unprofiled) - 1


def _profile_notes(profile: Profile) -> list[str]:
    notes = profile.facts.get("notes", ())
    return [note for note in notes if isinstance(note, str)] if isinstance(notes, list | tuple) else []


def _memory_notes(rank: CapturedRank) -> list[str]:
    observed = rank.manifest.get("memory")
    reason = refusal(observed) if observed is not None else None
    return [_("Memory: {reason}", reason=reason)] if reason else []


def _with_ranks(
    explanation: Explanation, captured: Captured, facts: TrialFacts
) -> tuple[Explanation, list[str]]:
    profiles = [shares_profile(rank) for rank in captured.ranks]
    details = [rank.detail for rank in captured.ranks]
    classes = [classes_of(profile, detail) for profile, detail in zip(profiles, details, strict=True)]
    rows, buckets = ranks_of(profiles, classes, details, facts.nodes)
    return replace(explanation, ranks=rows, buckets=buckets), list(
        rank_evidence(rows, buckets, facts.peaks.link)
    )
