"""What a reader sees first: what was measured, the figures, the verdict, the doubts each once."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from trainmark.base.text import natural_key
from trainmark.logs.ledger.entry import short_name
from trainmark.measure.doubts import Doubt, DoubtCode, Severity
from trainmark.measure.figure import FinishResult, Pauses, Result
from trainmark.measure.key import Key
from trainmark.measure.result import WIDE_INTERVAL, Reliability, ReliabilityVerdict, result_verdict
from trainmark.pages import label, number
from trainmark.view import blocks
from trainmark.view.blocks import DoubtMark, Headline, Span
from trainmark.view.message import Message, _, joined

# Up to so many names of a kind are written out; of more, their number.
MOST_NAMES = 3
# More reasons are in the list of doubts; a sentence that names them all says nothing.
MOST_REASONS = 3
# Of a doubt that many cases have in different words, the first say enough; the JSON report has all.
MOST_SENTENCES = 4
MOST_CASES = 3
GRAVEST_FIRST = tuple(Severity)

LIST = _(", ")
NO_INTERVAL = _("no interval")
SOME_NAMES = {
    "workload": _("workloads"),
    "framework": _("frameworks"),
    "precision": _("precisions"),
    "device": _("kinds of device"),
}


def subject_parts(results: Sequence[Result]) -> list[str]:
    """Return what was measured and on what, from the keys and what the workloads declare.

    `ResNet-50 at 224²`, `PyTorch 2.13 AMP`, `batch 256 per device`, `8 × H200`.
    """
    keys = [result.key for result in results]
    parts = [_workload(keys), *_framework(keys), _batch(keys), *_devices(keys)] if keys else []
    return list(filter(None, parts))


def subject(results: Sequence[Result]) -> str:
    """Return these parts in one line; empty without a result."""
    line = ""
    for part in subject_parts(results):
        line = _("{first}, {more}", first=line, more=part) if line else part
    return line


def heading(results: Sequence[Result]) -> list[Span]:
    """Return these parts so that a line breaks between them."""
    parts = subject_parts(results)
    return [
        Span(_("{first}, {more}", first=part, more="") if part is not parts[-1] else part, "part")
        for part in parts
    ]


def _workload(keys: Sequence[Key]) -> str:
    title = _named(_distinct(label.workload_title(key.workload) for key in keys), "workload")
    if len({key.workload for key in keys}) > 1:
        return title
    names = dict.fromkeys(name for key in keys for name, _value in key.axes)
    shown = " ".join(filter(None, (_axis(keys[0].workload, name, keys) for name in names)))
    return _("{title} at {axes}", title=title, axes=shown) if shown else title


def _axis(workload: str, name: str, keys: Sequence[Key]) -> str:
    values = sorted({key.value(name) for key in keys if key.value(name) is not None}, key=_numerically)
    texts = [label.axes(workload, ((name, value),)) for value in values]
    if not all(texts):
        return ""  # a quiet axis, part of them at its default: the names of the cases tell
    return "/".join(texts) if len(texts) <= MOST_NAMES else f"{texts[0]}–{texts[-1]}"


def _framework(keys: Sequence[Key]) -> list[str]:
    versions = _distinct(label.framework_title(key) for key in keys if key.framework)
    precisions = _distinct(key.precision.upper() for key in keys if key.precision)
    frameworks = _named(versions, "framework")
    if len(precisions) > MOST_NAMES:
        return [frameworks, _named(precisions, "precision")]
    return [joined(list(filter(None, (frameworks, "/".join(precisions)))), " ")]


def _batch(keys: Sequence[Key]) -> str:
    batches = {key.batch_per_device for key in keys if key.batch_per_device is not None}
    if not batches:
        return ""
    if any(key.devices > 1 for key in keys):
        return _("batch {batch} per device", batch=_span(batches))
    return _("batch {batch}", batch=_span(batches))


def _devices(keys: Sequence[Key]) -> list[str]:
    nodes = {key.nodes for key in keys}
    device = _named(_distinct(short_name(key.device) for key in keys if key.device), "device")
    count = _span({key.devices for key in keys})
    threads = {key.threads for key in keys if key.threads is not None}
    parts: list[str] = [_("{count} nodes", count=_span(nodes))] if max(nodes) > 1 else []
    if device:
        parts.append(_("{count} × {device}", count=count, device=device))
    elif max(key.devices for key in keys) > 1:
        parts.append(count)
    if threads:
        parts.append(_("1 thread") if threads == {1} else _("{count} threads", count=_span(threads)))
    return parts


def _named(names: Sequence[str], what: str) -> str:
    if len(names) <= MOST_NAMES:
        return joined(names, LIST)
    return _("{count} {what}", count=len(names), what=SOME_NAMES[what])


def _distinct(names: Iterable[str]) -> list[str]:
    return sorted(set(names), key=natural_key)


def _span(counts: set[int]) -> str:
    """`8`, `1–8`."""
    low, high = min(counts), max(counts)
    return f"{low:,}" if low == high else f"{low:,}–{high:,}"


def _numerically(value: int | str) -> tuple[tuple[int, str], ...]:
    return natural_key(str(value))


def figure_text(result: Result) -> Message:
    """Return `6,154.7 images/s [6,130, 6,173], n = 6`, after the time to train where there is one."""
    interval = number.interval(result.interval) if result.interval else NO_INTERVAL
    unit = label.rate_unit(result.unit)
    rate = _(
        "{rate} {unit} {interval}, n = {n}",
        rate=number.throughput(result.throughput), unit=unit, interval=interval, n=result.n,
    )  # fmt: skip
    finish = result.finish
    if finish is None or finish.time2train is None:
        return rate
    bounds = f" {number.clock_interval(finish.interval)}" if finish.interval else ""
    return _(
        "{time} to {target}{bounds}; {rate}",
        time=number.clock(finish.time2train), target=target_words(finish), bounds=bounds, rate=rate,
    )  # fmt: skip


def figure_lines(results: Sequence[Result]) -> list[str]:
    """Return the headline figures, each under its case where there are several."""
    shown = label.headlines(label.by_series(results))
    if len(results) == 1:
        return [figure_text(result) for _group, result in shown]
    lines: list[str] = [
        _("{case}: {figure}", case=group.case(result), figure=figure_text(result)) for group, result in shown
    ]
    return [*lines, _("({part})", part=part)] if (part := headline_count(results)) else lines


def headline_count(results: Sequence[Result]) -> str:
    """Return `4 of 6 results` where the headlines leave some out."""
    shown = len(label.headlines(label.by_series(results)))
    return (
        _("{shown} of {results} results", shown=shown, results=len(results)) if shown < len(results) else ""
    )


def headline_figures(results: Sequence[Result]) -> list[Headline]:
    shown = label.headlines(label.by_series(results))
    return [_headline(group, result, several=len(results) > 1) for group, result in shown]


def _headline(group: label.Series, result: Result, several: bool) -> Headline:
    of = f"{group.name} · {result.key.topology}" if several else ""
    unit, n, finish = label.rate_unit(result.unit), Span(f"n = {result.n}", "sub"), result.finish
    rate = number.throughput(result.throughput)
    below: list[blocks.Text] = []
    if finish is None or finish.time2train is None:
        below.append([number.interval(result.interval) if result.interval else NO_INTERVAL, n])
        if finish and finish.target:
            below.append(_("{target} not reached", target=target_words(finish)))
    else:
        below.append([number.clock_interval(finish.interval) if finish.interval else NO_INTERVAL, n])
        below.append([rate, Span(unit, "sub")])
    if result.speedup and result.key.devices > 1:
        bounds = number.ratio_interval(result.speedup.interval) if result.speedup.interval else ""
        share = f"· {number.percent(result.efficiency.value, 0)}" if result.efficiency else ""
        below.append([f"×{number.ratio(result.speedup.value)}", Span(f"{bounds} {share}".strip(), "sub")])
    if finish is None or finish.time2train is None:
        return Headline(rate, unit, below, of)
    return Headline(number.clock(finish.time2train), _("to {target}", target=target_words(finish)), below, of)


def target_words(finish: FinishResult) -> str:
    """`accuracy=0.761` as `accuracy 76.1 %`, with the titles of the metrics."""
    metrics = {metric.name: metric for metric in finish.metrics}
    parts = []
    for part in (finish.target or "").split(", "):
        name, _equals, value = part.partition("=")
        try:
            parts.append(metrics[name].target_text(float(value)))
        except (KeyError, ValueError):
            parts.append(part)
    return ", ".join(parts)


def verdict_sentence(verdict: ReliabilityVerdict) -> Message:
    """Return `Reliable to ±0.4 %.`, or `Do not rely on this: the host was busy in 4 of 6 trials.`"""
    within, reasons = number.percent(verdict.within), _reasons(verdict)
    if verdict.reliability is Reliability.NO_FIGURE:
        return _("There is no figure: no trial ended well.")
    if verdict.figures > 1:
        return _of_several(verdict, within, reasons)
    if verdict.reliability is Reliability.RELIABLE:
        return _("Reliable to ±{within}.", within=within)
    if verdict.reliability is Reliability.UNRELIABLE:
        return _("Do not rely on this: {reasons}.", reasons=reasons)
    if verdict.within is None:
        return _("Provisional: {reasons}.", reasons=reasons)
    if verdict.within <= WIDE_INTERVAL:
        return _("Reliable to ±{within}, but check first: {reasons}.", within=within, reasons=reasons)
    if verdict.reasons:
        return _("Known only to ±{within}: {reasons}.", within=within, reasons=reasons)
    return _("Known only to ±{within}.", within=within)


def _of_several(verdict: ReliabilityVerdict, within: str, reasons: Message) -> Message:
    counts = {"concerned": verdict.concerned, "figures": verdict.figures}
    is_all = verdict.concerned == verdict.figures
    if verdict.reliability is Reliability.RELIABLE:
        return _("All {figures} figures are reliable to ±{within} or better.", within=within, **counts)
    if verdict.reliability is Reliability.UNRELIABLE:
        if is_all:
            return _("Do not rely on these {figures} figures: {reasons}.", reasons=reasons, **counts)
        return _("Do not rely on {concerned} of {figures} figures: {reasons}.", reasons=reasons, **counts)
    if is_all:
        return _("Check these {figures} figures before use: {reasons}.", reasons=reasons, **counts)
    return _("Check {concerned} of {figures} figures before use: {reasons}.", reasons=reasons, **counts)


def _reasons(verdict: ReliabilityVerdict) -> Message:
    clauses: list[str] = [doubt.clause for doubt in verdict.reasons]
    if not clauses:
        no_interval = _("too few trials for a 95 % interval")
        clauses = [no_interval if verdict.within is None else _("the interval is wide")]
    if (more := len(clauses) - MOST_REASONS) > 0:
        clauses = [*clauses[:MOST_REASONS], _("and {count} more", count=more)]
    return joined(clauses, _("; "))


def doubts_verdict(result: Result) -> str:
    """Return the verdict on a result that has more against it than its interval; empty for any other."""
    verdict = result_verdict(result)
    if not verdict.reasons or verdict.reliability is Reliability.RELIABLE:
        return ""
    return verdict_sentence(verdict)


@dataclass(frozen=True)
class DoubtNote:
    """All doubts of one code among the results of a run, under the number that refers to them."""

    code: DoubtCode
    mark: DoubtMark
    severity: Severity
    sentences: tuple[str, ...]

    @property
    def block(self) -> blocks.Doubt:
        return blocks.Doubt(self.mark, self.severity.label, self.sentences)


def doubt_notes(results: Sequence[Result]) -> tuple[DoubtNote, ...]:
    """Return one note for each code among these results, the gravest first."""
    by_code: dict[DoubtCode, list[tuple[str, Doubt]]] = {}
    for name, result in label.cases(results):
        for doubt in result.doubts:
            by_code.setdefault(doubt.code, []).append((name, doubt))
    gravest = {
        code: min((doubt.severity for _case, doubt in named), key=GRAVEST_FIRST.index)
        for code, named in by_code.items()
    }
    ordered = sorted(by_code, key=lambda code: GRAVEST_FIRST.index(gravest[code]))
    return tuple(
        DoubtNote(
            code,
            DoubtMark(place, gravest[code].value, code.label),
            gravest[code],
            _sentences(by_code[code], len(results)),
        )
        for place, code in enumerate(ordered, 1)
    )


def doubt_marks(result: Result, notes: Sequence[DoubtNote]) -> list[DoubtMark]:
    """Return the numbers of the doubts that a result has, in their order."""
    codes = {doubt.code for doubt in result.doubts}
    return [note.mark for note in notes if note.code in codes]


def _sentences(named: Sequence[tuple[str, Doubt]], results: int) -> tuple[str, ...]:
    """Return each sentence, after the cases that it concerns where they are not all."""
    cases_of: dict[str, list[str]] = {}
    for name, doubt in named:
        cases_of.setdefault(doubt.text, []).append(name)
    sentences = [_of_cases(sentence, cases, results) for sentence, cases in cases_of.items()]
    if len(sentences) > MOST_SENTENCES:
        more = _("{count} more sentences are in the JSON report.", count=len(sentences) - MOST_SENTENCES)
        return (*sentences[:MOST_SENTENCES], more)
    return tuple(sentences)


def _of_cases(sentence: str, cases: Sequence[str], results: int) -> str:
    if len(cases) == results:
        return sentence
    shown = joined(cases[:MOST_CASES], LIST)
    if len(cases) > MOST_CASES:
        shown = _("{cases} and {count} more", cases=shown, count=len(cases) - MOST_CASES)
    return _("{cases}: {sentence}", cases=shown, sentence=sentence)


# How an untouched program was seen, as its events say it; what follows, such as the name of a format, stays.
SOURCES = (
    *(_("PyTorch optimizer hook"), _("PyTorch backward passes, weights updated by hand"), _("Keras fit")),
    *(_("Keras optimizers outside of fit"), _("calls of JAX functions that take gradients")),
    *(_("lines that match the pattern"), _("the log, read as"), _("as given by --samples-per-step")),
    *(_("counted in the batches of the data loader"), _("counted in the batches of Keras fit")),
    *(_("counted in the batches of tf.data"), _("not known; steps are counted")),
    *(_("evaluation"), _("checkpoint")),
)


def source_sentences(results: Sequence[Result]) -> list[str]:
    """Return how steps were seen and samples counted, each way once, and the pauses of each result."""
    ways = dict.fromkeys((result.step_source, result.sample_source) for result in results)
    seen = [
        _("Steps: {source}; samples: {samples}.", source=_source(step), samples=_source(sample))
        if sample
        else _("Steps: {source}.", source=_source(step))
        for step, sample in ways
        if step
    ]
    return [*seen, *(_pauses(result.pauses) for result in results if result.pauses)]


def _pauses(pauses: Sequence[Pauses]) -> Message:
    counted = [
        _(
            "{kind} × {count}, {seconds} s",
            kind=_source(each.kind),
            count=each.count,
            seconds=f"{each.seconds:.3g}",
        )
        for each in pauses
    ]
    return _("In no step of the first trial: {pauses}.", pauses=joined(counted, LIST))


def _source(text: str) -> str:
    known = next((source for source in SOURCES if text.startswith(source)), None)
    return text if known is None else joined([known, text[len(known) :]], "")
