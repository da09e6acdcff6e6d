"""The sentences of an explanation: the headline, how far the profile agrees, and what is refused."""

from __future__ import annotations

from collections.abc import Iterable

from trainmark.explain.explanation import Advice, ExplainedSubject, Explanation, MeasuredPeaks
from trainmark.explain.report import figures
from trainmark.explain.report.language.chinese import sentence
from trainmark.explain.report.language.words import cause_name, class_name, explain_words
from trainmark.measure.quantity import rate_words
from trainmark.pages import number
from trainmark.report.format.words import Lang

MOST_OF_IDLE = 0.5
LEAST_TOLD_IDLE = 0.005
MOST_ALIKE = 0.05  # by which two rates of one program may differ without a word
MOST_BOUNDED = 3
LEAST_TIMES_FLOOR = 0.97  # what is faster shows that the floor is none: its peaks were disturbed


def subject_line(subject: ExplainedSubject, lang: Lang) -> str:
    """`ResNet-50, batch 256 on NVIDIA H200 · PyTorch 2.11 · 2 ranks`."""
    t = explain_words(lang)
    first = t["on_device"].format(title=subject.title, device=subject.device) if subject.device else ""
    ranks = t["ranks_of"].format(count=subject.world_size) if subject.world_size > 1 else ""
    return " · ".join(filter(None, (first or subject.title, subject.framework, ranks)))


def about_line(explanation: Explanation, lang: Lang) -> str:
    """`NVIDIA H200 · PyTorch 2.11 · 2 ranks · 5 profiled steps`: all but the title."""
    t, subject = explain_words(lang), explanation.subject
    ranks = t["ranks_of"].format(count=subject.world_size) if subject.world_size > 1 else ""
    steps = steps_words(explanation.steps, lang)
    return " · ".join(filter(None, (subject.device, subject.framework, ranks, steps)))


def rate_sentence(explanation: Explanation, lang: Lang) -> str:
    t, time = explain_words(lang), duration(explanation.step_seconds)
    rate, measured = figures.samples_per_second(explanation), explanation.measured_rate
    if rate is None:
        return t["time_only"].format(time=time)
    unit = explanation.subject.unit
    told = [t["rate"].format(time=time, rate=number.throughput(rate), unit=unit)]
    if measured and abs(rate / measured - 1) > MOST_ALIKE:
        told.append(t["other_rate"].format(rate=number.throughput(measured), unit=unit))
    return joined(told, lang)


def doubt_sentences(explanation: Explanation, lang: Lang) -> list[str]:
    """Return what keeps the measured steps, and so all that follows, from being relied on."""
    t = explain_words(lang)
    return [t["caution"].format(doubt=sentence(doubt, lang)) for doubt in explanation.doubts]


def where_sentence(explanation: Explanation, lang: Lang) -> str:
    """Name the longest class and the idle time, the larger first; where shares are refused, within bounds."""
    if explanation.agreement.refusal is not None or explanation.total <= 0:
        return _bounds_sentence(explanation, lang)
    t, clauses = explain_words(lang), list[tuple[float, str]]()
    if explanation.classes:
        most = max(explanation.classes, key=lambda own: own.alone)
        is_slower = (figures.times_floor(most) or 0.0) >= LEAST_TIMES_FLOOR
        times, share = figures.times_floor_text(most, 2) if is_slower else "", most.alone / explanation.total
        words = t["most_floor" if times else "most"].format(
            share=figures.part_texts(explanation)["class", most.name][1],
            name=class_name(most.name, lang),
            times=times,
        )
        clauses.append((share, words))
    idle = explanation.idle_nanoseconds / explanation.total
    if idle >= LEAST_TOLD_IDLE:
        cause = max(explanation.idle, key=lambda own: own.nanoseconds)
        known = cause.nanoseconds > MOST_OF_IDLE * explanation.idle_nanoseconds
        kind = explanation.subject.kind
        key = f"{'most_idle_cause' if known else 'most_idle'}{'_cpu' if kind == 'cpu' else ''}"
        words = t[key].format(share=number.percent(idle), cause=cause_name(cause.cause, lang, kind))
        clauses.append((idle, words))
    ordered = [words for _, words in sorted(clauses, key=lambda clause: -clause[0])]
    text = t["most_join"].join(ordered) + t["full_stop"] if ordered else ""
    return text[:1].upper() + text[1:]


def _bounds_sentence(explanation: Explanation, lang: Lang) -> str:
    """Say between which shares the longest parts lie, whatever the profiler added or missed."""
    t, kind = explain_words(lang), explanation.subject.kind

    def named(part: figures.Part) -> str:
        is_class = part.kind == "class"
        return class_name(part.name, lang) if is_class else cause_name(part.name, lang, kind)

    clauses = [
        t["between"].format(name=named(part), low=number.percent(low, 0), high=number.percent(high, 0))
        for part, low, high in figures.bounded_shares(explanation)
        if part.kind != "overlap"
    ]
    text = t["most_join"].join(clauses[:MOST_BOUNDED])
    return t["as_far"].format(clauses=text) + t["full_stop"] if text else ""


def steps_words(steps: int, lang: Lang) -> str:
    t = explain_words(lang)
    return t["profiled_step"] if steps == 1 else t["profiled_steps"].format(steps=steps)


def first_sentence(explanation: Explanation, lang: Lang) -> str:
    """The first advice with its gain; empty where there is none."""
    if not explanation.advice:
        return ""
    first = explanation.advice[0]
    return explain_words(lang)["first"].format(
        sentence=sentence(first.sentence, lang), gain=gain_words(first, lang)
    )


def gain_words(advice: Advice, lang: Lang) -> str:
    """`(throughput +12.0 % [+8.1, +16.2])`."""
    bounds = f"[{advice.low:+.1f}, {advice.high:+.1f}]".replace("-", "−")
    gain = figures.signed_percent(advice.gain / 100)
    t = explain_words(lang)
    return t["gain"].format(gain=gain, bounds=bounds, maybe="" if is_certain(advice) else t["maybe"])


def is_certain(advice: Advice) -> bool:
    """Whether the interval of its gain leaves no room for none."""
    return advice.low > 0


def agreement_words(explanation: Explanation, lang: Lang) -> str:
    """Say how far the profiled step is from the timed one, and what profiling costs."""
    t, agreement = explain_words(lang), explanation.agreement
    profiled = duration(agreement.profiled)
    if agreement.measured is None:
        sentences = [t["agreement_alone"].format(profiled=profiled)]
    else:
        sentences = [
            t["agreement"].format(
                profiled=profiled,
                measured=duration(agreement.measured),
                difference=figures.signed_percent(agreement.difference),
            )
        ]
    if agreement.corrected:
        sentences.append(t["corrected"])
    if explanation.overhead is not None:
        sentences.append(t["overhead"].format(overhead=number.percent(max(0.0, explanation.overhead))))
    return joined(sentences, lang)


def joined(sentences: Iterable[str], lang: Lang) -> str:
    """Sentences in Chinese follow each other without a space."""
    return ("" if lang == "zh" else " ").join(filter(None, sentences))


def refusal_sentence(explanation: Explanation, lang: Lang) -> str:
    return explain_words(lang)["refused"].format(refusal=sentence(explanation.agreement.refusal or "", lang))


def floor_sentence(explanation: Explanation, lang: Lang) -> str:
    """Name the peaks that floors are made from; empty where there is no floor."""
    if not any(own.floor for own in explanation.classes):
        return ""
    return explain_words(lang)["floor_note"].format(peaks=peak_words(explanation.peaks, lang))


def peak_words(peaks: MeasuredPeaks, lang: Lang) -> str:
    """`741 TFLOP/s, memory 4,130 GB/s, link 3.13 GB/s`, as far as they are known."""
    t = explain_words(lang)
    arithmetic = f"{number.significant(peaks.flops / 1e12, 3)} TFLOP/s" if peaks.flops else ""
    bandwidth = f"{t['memory_bound']} {rate_words(peaks.bandwidth)}" if peaks.bandwidth else ""
    link = f"{t['link']} {rate_words(peaks.link)}" if peaks.link else ""
    return t["list_join"].join(filter(None, (arithmetic, bandwidth, link))) or number.MISSING


def basis_sentence(explanation: Explanation, lang: Lang) -> str:
    """Say what the intervals of the what-ifs rest on; empty where there is none."""
    bases = dict.fromkeys(sentence(change.basis, lang) for change in explanation.what_ifs if change.basis)
    t = explain_words(lang)
    return t["basis"].format(bases=t["most_join"].join(bases)) if bases else ""


def memory_sentence(explanation: Explanation, lang: Lang) -> str:
    t, memory = explain_words(lang), explanation.memory
    if memory is None:
        return ""
    reserved = memory.reserved is not None
    return t["memory_reserved" if reserved else "memory_line"].format(
        peak=gibibytes(memory.peak), reserved=gibibytes(memory.reserved)
    )


def duration(seconds: float) -> str:
    """Four digits in the unit that fits."""
    for unit, scale in (("s", 1.0), ("ms", 1e-3)):
        if seconds >= scale:
            return f"{number.significant(seconds / scale, 4)} {unit}"
    return f"{number.significant(seconds / 1e-6, 4)} µs"


def gibibytes(value: float | None) -> str:
    return f"{number.significant(value / number.GIB, 3)} GiB" if value is not None else number.MISSING
