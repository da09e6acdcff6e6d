"""The sentences of an explanation: the headline, how far the profile agrees, what its intervals rest on."""

from __future__ import annotations

from trainmark.explain import figures
from trainmark.explain.explanation import Advice, ExplainedSubject, Explanation, MeasuredPeaks, Memory
from trainmark.explain.figures import duration
from trainmark.explain.names import cause_name, class_name
from trainmark.measure.quantity import rate_words
from trainmark.pages import number
from trainmark.view.message import Message, _, _n, joined

MOST_OF_IDLE = 0.5
LEAST_TOLD_IDLE = 0.005
MOST_ALIKE = 0.05  # by which two rates of one program may differ without a word
MOST_BOUNDED = 3
LEAST_TIMES_FLOOR = 0.97  # what is faster shows that the floor is none: its peaks were disturbed


def subject_line(subject: ExplainedSubject) -> str:
    """`ResNet-50, batch 256 on NVIDIA H200 · PyTorch 2.11 · 2 ranks`."""
    first: str = subject.title
    if subject.device:
        first = _("{title} on {device}", title=subject.title, device=subject.device)
    return joined([first, *filter(None, (subject.framework, _ranks(subject)))], " · ")


def about(explanation: Explanation) -> str:
    """`NVIDIA H200 · PyTorch 2.11 · 2 ranks · 5 profiled steps`: all but the title."""
    subject = explanation.subject
    parts = (subject.device, subject.framework, _ranks(subject), steps_words(explanation))
    return joined(list(filter(None, parts)), " · ")


def steps_words(explanation: Explanation) -> Message:
    return _n(explanation.steps, "1 profiled step", "{count} profiled steps")


def _ranks(subject: ExplainedSubject) -> str:
    return _("{count} ranks", count=subject.world_size) if subject.world_size > 1 else ""


def rate_sentence(explanation: Explanation) -> list[Message]:
    time, rate = duration(explanation.step_seconds), figures.samples_per_second(explanation)
    if rate is None:
        return [_("{time} a step.", time=time)]
    figure = {"rate": number.throughput(rate), "unit": explanation.subject.unit}
    return [_("{time} a step, {rate} {unit}/s.", time=time, **figure), *other_rate_sentence(explanation)]


def other_rate_sentence(explanation: Explanation) -> list[Message]:
    """Return what the run measured, where that is another rate than that of the profiled steps."""
    rate, measured = figures.samples_per_second(explanation), explanation.measured_rate
    if rate is None or not measured or abs(rate / measured - 1) <= MOST_ALIKE:
        return []
    return [
        _(
            "The run measured {rate} {unit}/s: the steps beside the profile are later ones, without what"
            " comes now and then (a rollout, an evaluation, a new epoch), or the machine was busier at one"
            " time.",
            rate=number.throughput(measured),
            unit=explanation.subject.unit,
        )
    ]


def where_sentence(explanation: Explanation) -> str:
    """Name the longest class and the idle time, the larger first; where shares are refused, within bounds."""
    if explanation.agreement.refusal is not None or explanation.total <= 0:
        return _bounds_sentence(explanation)
    clauses = [*_class_clause(explanation), *_idle_clause(explanation)]
    ordered = [clause for _share, clause in sorted(clauses, key=lambda clause: -clause[0])]
    if not ordered:
        return ""
    text = _("{clauses}.", clauses=joined(ordered, _("; ")))
    return text.worded(text[:1].upper() + text[1:])


def _class_clause(explanation: Explanation) -> list[tuple[float, Message]]:
    if not explanation.classes:
        return []
    most = max(explanation.classes, key=lambda own: own.alone)
    share, name = figures.part_texts(explanation)["class", most.name][1], class_name(most.name)
    is_slower = (figures.times_floor(most) or 0.0) >= LEAST_TIMES_FLOOR
    clause = _("{share} of the step is {name}", share=share, name=name)
    if is_slower and (times := figures.times_floor_text(most, 2)):
        clause = _("{share} of the step is {name}, {times} × its floor", share=share, name=name, times=times)
    return [(most.alone / explanation.total, clause)]


def _idle_clause(explanation: Explanation) -> list[tuple[float, Message]]:
    idle, kind = explanation.idle_nanoseconds / explanation.total, explanation.subject.kind
    if idle < LEAST_TOLD_IDLE:
        return []
    clause = _("the device is idle for {share}", share=number.percent(idle))
    if kind == "cpu":
        clause = _("no operator runs for {share}", share=number.percent(idle))
    cause = max(explanation.idle, key=lambda own: own.nanoseconds)
    if cause.nanoseconds > MOST_OF_IDLE * explanation.idle_nanoseconds:
        clause = _("{clause} (mostly: {cause})", clause=clause, cause=cause_name(cause.cause, kind))
    return [(idle, clause)]


def _bounds_sentence(explanation: Explanation) -> str:
    """Say between which shares the longest parts lie, whatever the profiler added or missed."""
    kind = explanation.subject.kind
    clauses = [
        _(
            "{name} takes {low} to {high} of the step",
            name=class_name(part.name) if part.kind == "class" else cause_name(part.name, kind),
            low=number.percent(low, 0),
            high=number.percent(high, 0),
        )
        for part, low, high in figures.bounded_shares(explanation)
        if part.kind != "overlap"
    ]
    if not clauses:
        return ""
    return _("As far as can be told: {clauses}.", clauses=joined(clauses[:MOST_BOUNDED], _("; ")))


def first_sentence(explanation: Explanation) -> Message:
    """Return the first advice with its gain."""
    first = explanation.advice[0]
    return _("First: {sentence} {gain}", sentence=first.sentence, gain=gain_words(first))


def gain_words(advice: Advice) -> Message:
    """`(throughput +12.0 % [+8.1, +16.2])`."""
    values = {
        "gain": figures.signed_percent(advice.gain / 100),
        "bounds": f"[{advice.low:+.1f}, {advice.high:+.1f}]".replace("-", "−"),
    }
    if is_certain(advice):
        return _("(throughput {gain} {bounds})", **values)
    return _("(throughput {gain} {bounds}; may be nothing)", **values)


def is_certain(advice: Advice) -> bool:
    """Whether the interval of its gain leaves no room for none."""
    return advice.low > 0


def agreement_sentences(explanation: Explanation) -> list[Message]:
    """Say how far the profiled step is from the timed one, and what profiling costs."""
    agreement = explanation.agreement
    profiled = duration(agreement.profiled)
    if agreement.measured is None:
        told = [
            _(
                "No step was timed without the profiler: shares are of the profiled step, {profiled}.",
                profiled=profiled,
            )
        ]
    else:
        told = [
            _(
                "Profiled {profiled} a step, timed without the profiler {measured}: {difference}.",
                profiled=profiled,
                measured=duration(agreement.measured),
                difference=figures.signed_percent(agreement.difference),
            )
        ]
    if agreement.corrected:
        told.append(
            _(
                "Kernels take as long with the profiler as without it; the gaps between them, which tracing"
                " widens, are reduced to what the timed step leaves for them."
            )
        )
    if explanation.overhead is not None:
        overhead = number.percent(max(0.0, explanation.overhead))
        told.append(_("Profiling costs {overhead} of a step.", overhead=overhead))
    return told


def floor_sentence(explanation: Explanation) -> list[Message]:
    """Name the peaks that floors are made from, where there is a floor."""
    if not any(own.floor for own in explanation.classes):
        return []
    return [
        _(
            "Floor: the least time for these FLOP and bytes at the peaks measured on this device ({peaks}).",
            peaks=_peaks(explanation.peaks),
        )
    ]


def _peaks(peaks: MeasuredPeaks) -> str:
    """`741 TFLOP/s, memory 4,130 GB/s, link 3.13 GB/s`, as far as they are known."""
    known: list[str] = []
    if peaks.flops:
        known.append(f"{number.significant(peaks.flops / 1e12, 3)} TFLOP/s")
    if peaks.bandwidth:
        known.append(_("memory {rate}", rate=rate_words(peaks.bandwidth)))
    if peaks.link:
        known.append(_("link {rate}", rate=rate_words(peaks.link)))
    return joined(known, _(", ")) or number.MISSING


def basis_sentence(explanation: Explanation) -> list[Message]:
    """Say what the intervals of the what-ifs rest on."""
    bases = list(dict.fromkeys(change.basis for change in explanation.what_ifs if change.basis))
    return [_("Intervals rest on: {bases}.", bases=joined(bases, _("; ")))] if bases else []


def memory_sentence(memory: Memory) -> Message:
    peak = _gibibytes(memory.peak)
    if memory.reserved is None:
        return _("At the peak {peak} are in use.", peak=peak)
    reserved = _gibibytes(memory.reserved)
    return _("At the peak {peak} are in use and {reserved} reserved.", peak=peak, reserved=reserved)


def _gibibytes(value: float) -> str:
    return f"{number.significant(value / number.GIB, 3)} GiB"
