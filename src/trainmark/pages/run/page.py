"""The page of a run, from what it found to how to repeat it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from functools import partial

from trainmark.measure.comparison import framework_comparisons
from trainmark.measure.result import run_verdict
from trainmark.pages import label, number
from trainmark.pages.fabric import fabric_blocks
from trainmark.pages.run import plot_scaling, plot_trials
from trainmark.pages.run.answer import (
    doubt_notes,
    figure_lines,
    heading,
    headline_count,
    headline_figures,
    source_sentences,
    subject,
    verdict_sentence,
)
from trainmark.pages.run.environment import environment_section
from trainmark.pages.run.finish import finish_section
from trainmark.pages.run.frameworks import framework_section, tables_of
from trainmark.pages.run.results import contrast_section, contrast_sentence, result_section
from trainmark.pages.run.scaling import scaling_section, time_section
from trainmark.pages.run.shares import arithmetic_section, cost_section, reference_section
from trainmark.store.report import RunReport, TrialLine
from trainmark.view import blocks
from trainmark.view.blocks import (
    Answer,
    Block,
    Code,
    Headlines,
    Items,
    Late,
    Medium,
    Page,
    Section,
    Sentence,
    Span,
    Table,
    Text,
    only,
    without,
)
from trainmark.view.chart.model import Plot
from trainmark.view.message import Message, _

ON_PAPER: frozenset[Medium] = frozenset({"markdown", "html"})
OUTCOMES = {
    str(name): name
    for name in (
        *(_("ok"), _("oom"), _("timeout"), _("hung"), _("crashed"), _("interrupted"), _("skipped")),
        *(_("invalid"), _("lost"), _("damaged")),
    )
}


def run_page(report: RunReport) -> Page:
    """Return the page; a terminal gets the answer, the figures and their doubts, and nothing else."""
    foot = f"Trainmark {report.version} · {report.name} · {report.created}"
    shown = heading(report.results) or report.name
    return Page(report.name, Late(partial(_blocks, report)), shown, report.about, foot)


def _blocks(report: RunReport) -> Iterator[Block]:
    results = report.results
    if not results and report.trials:
        yield only("terminal", *_failed(report))
    yield from _head(report)
    notes = doubt_notes(results)
    if report.contrasts:
        yield contrast_section(report)
    yield result_section(report, notes)
    tables = tables_of(report)
    # Where every series stands among the frameworks, one plot of them all would only show it again.
    compared = {row.result.key for table in tables for row in table.rows}
    sections = (
        finish_section(results, report.curves),
        framework_section(tables, notes),
        _axis(report),
        scaling_section(results, compared.issuperset(result.key for result in results)),
        reference_section(report),
        arithmetic_section(results),
        cost_section(report),
        time_section(results),
        Section(_("Fabric"), list(fabric_blocks(report.fabric)), ON_PAPER) if report.fabric else None,
        _drawn(_("Step times"), plot_trials.steps_plot(report.traces), plot_trials.STEPS_NOTE),
        _drawn(
            _("Spread of the trials"), plot_trials.spread_plot(label.cases(results)), plot_trials.SPREAD_NOTE
        ),
        _drawn(
            _("Devices during the trial"), plot_trials.samples_plot(report.samples), plot_trials.SAMPLES_NOTE
        ),
        _failures(report),
        environment_section(report.environment),
        _method(report),
        _commands(report),
        _every_trial(report),
    )
    yield from filter(None, sections)


def _head(report: RunReport) -> Iterator[Block]:
    """Yield what was measured, the figures, the verdict and the doubts."""
    results = report.results
    if not results and report.trials:
        yield from _verdict(report)
        return
    contrasts = [contrast_sentence(report, contrast) for contrast in report.contrasts]
    figures = contrasts or figure_lines(results)
    yield only("terminal", Answer([*filter(None, [subject(results)]), *figures]))
    if line := subject(results):
        yield only("markdown", Sentence(Span(line, "strong")), Items(figures, "lines"))
    if results:
        yield only("html", Headlines(headline_figures(results), _("Main results")))
        if part := headline_count(results):
            yield only("html", Sentence(part, "quiet not-all"))
    yield only("html", *(Sentence(sentence, "range") for sentence in contrasts))
    yield from _verdict(report)
    yield only("terminal", Items(source_sentences(results)))


def _verdict(report: RunReport) -> Iterator[Block]:
    verdict = run_verdict(report.results)
    sentence = Sentence(verdict_sentence(verdict), f"verdict is-{verdict.reliability.value}")
    if report.results or not report.trials:
        yield only("terminal", sentence)
    yield without("terminal", sentence)
    if notes := doubt_notes(report.results):
        yield only("html", blocks.Doubts([note.block for note in notes]))
    about = [Sentence(report.about)] if report.about else []
    yield only("markdown", *about, Items([_summary(report), _made_by(report)], "lines"))


def _failed(report: RunReport) -> Iterator[Block]:
    """Yield what the trials of each case ended in, and where to look on."""
    causes = failures(report.trials)
    first = f"trainmark show {report.name} {causes[0][0]}/{causes[0][3][0]:02d}"
    yield Sentence(_("no trial succeeded:"))
    yield Items(
        [
            f"  {case}: {len(repeats)} × {outcome}: {detail or 'reason unknown'}"
            for case, outcome, detail, repeats in causes
        ]
    )
    yield Sentence(_("the end of its log: `{command}`", command=first))


def _axis(report: RunReport) -> Section | None:
    """The throughput against the axis that the run varies."""
    if (varied := plot_scaling.varied_axis(report.results)) is None:
        return None
    plot = plot_scaling.axis_plot(varied)
    note = _("Median of the trials; the thin line is its interval.")
    title = _("Throughput by {axis}", axis=plot_scaling.axis_title(varied.field))
    charts = blocks.Charts([blocks.Chart(plot, note)], plot.legend, _("Series"), plot_scaling.AXIS)
    return Section(title, [charts], frozenset({"html"}))


def _drawn(title: Message, plot: Plot | None, note: Message) -> Section | None:
    if plot is None:
        return None
    return Section(title, [blocks.Chart(plot, note, _("Case"))], frozenset({"html"}))


def _summary(report: RunReport) -> Message:
    ok = sum(trial.outcome == "ok" for trial in report.trials)
    return _(
        "Results: {results}, from {trials} trials ({ok} ok, {failed} failed). Cases skipped: {skipped}.",
        results=len(report.results),
        trials=len(report.trials),
        ok=ok,
        failed=len(report.trials) - ok,
        skipped=len(report.skipped),
    )


def _made_by(report: RunReport) -> Message:
    return _("Measured with Trainmark {version}, {created}", version=report.version, created=report.created)


def _method(report: RunReport) -> Section:
    made = only("html", Sentence([_summary(report), _made_by(report)], "quiet"))
    return Section(_("Method"), [made, Items(list(_method_sentences(report)))], ON_PAPER)


def _method_sentences(report: RunReport) -> Iterator[Message]:
    results = report.results
    yield _(
        "Throughput is samples divided by wall time over the steady window of a trial, from boundaries at"
        " which the device had finished; it is never a mean of per-step rates."
    )
    yield _(
        "Each trial is a fresh process. A result is the median over its trials (here {trials} a result) with"
        " an interval for that median; where the trials carry less than 95 % confidence, that stands beside"
        " the interval.",
        trials=_span([result.n for result in results]),
    )
    yield _(
        "Warm-up ends where a change point in the step times says so (here after {warmup} steps), not after a"
        " fixed count.",
        warmup=_span([result.warmup_steps for result in results]),
    )
    yield _(
        "Speed-up compares with the one-device result of the same case, and efficiency is speed-up divided by"
        " the device count; without that baseline both are n/a."
    )
    if any(result.finish for result in results):
        yield _(
            "Trials of a training differ in their seed. Their times to train are summed up by the median with"
            " an interval from order statistics over the seeds."
        )
    if framework_comparisons(results):
        yield _(
            "Frameworks are compared where all else in the key is equal but version, layout and compiler."
            " Conformance says whether a framework was found to train the same model as the reference: what"
            " is not conformant, or not checked, may be fast because it does something else."
        )
    yield _("Doubts are reasons not to take a figure at its word; each says what to do about it.")


def _span(values: Sequence[int]) -> str:
    """`5`, or `3–5` where they differ."""
    if not values:
        return number.MISSING
    return str(min(values)) if min(values) == max(values) else f"{min(values)}–{max(values)}"


def _commands(report: RunReport) -> Section:
    suite = Section(_("Suite"), [Code(report.suite, "yaml")], folded=True)
    whole = Sentence(_("The whole run"), "note")
    return Section(_("Commands to repeat"), [whole, Code(report.command, "shell"), suite], ON_PAPER)


def _every_trial(report: RunReport) -> Section | None:
    if not report.trials:
        return None
    cases: dict[str, list[TrialLine]] = {}
    for trial in report.trials:
        cases.setdefault(trial.case, []).append(trial)
    lie = only(
        "markdown",
        Sentence(_("Logs, events and figures of each trial lie beside this report in trials/.")),
    )
    folded = [_case(case, trials) for case, trials in cases.items()]
    return Section(_("Every trial"), [lie, *folded], ON_PAPER)


def _case(case: str, trials: Sequence[TrialLine]) -> Section:
    counted = Counter(trial.outcome for trial in trials)
    outcomes: list[Text] = []
    for outcome, count in counted.items():
        outcomes += [*(["·"] if outcomes else ()), str(count), _outcome(outcome)]
    commands = dict.fromkeys(trial.command for trial in trials)
    note = _("Rank 0 of one trial")
    if len(commands) > 1:
        note = _(
            "Rank 0 of one trial ({count} different commands; the JSON report has all)", count=len(commands)
        )
    header = [
        *(_("repeat"), _("outcome"), _("throughput"), _("interval within the trial"), _("warm-up steps")),
        *(_("retries"), _("reason")),
    ]
    rows: list[list[Text]] = [
        [
            str(trial.repeat),
            _outcome(trial.outcome),
            number.throughput(trial.throughput),
            number.bounds(trial.low, trial.high),
            number.MISSING if trial.warmup_steps is None else str(trial.warmup_steps),
            str(trial.retries),
            trial.detail,
        ]
        for trial in trials
    ]
    table = Table(header, rows, frozenset({0, 2, 4, 5}), sortable=False)
    told: list[Block] = [table, Sentence(note, "note"), Code(next(iter(commands)), "shell")]
    return Section([case, Span(outcomes, "sub")], told, folded=True)


def _outcome(outcome: str) -> Span:
    return Span(OUTCOMES.get(outcome, outcome), "outcome ok" if outcome == "ok" else "outcome")


Failure = tuple[str, str, str, list[int]]


def failures(trials: Sequence[TrialLine]) -> list[Failure]:
    """Return case, outcome, reason and repeats of the trials of one case that failed alike."""
    repeats: dict[tuple[str, str, str], list[int]] = {}
    for trial in trials:
        if trial.outcome != "ok":
            repeats.setdefault((trial.case, trial.outcome, trial.detail), []).append(trial.repeat)
    return [(*cause, numbers) for cause, numbers in repeats.items()]


def _failures(report: RunReport) -> Section:
    rows: list[list[Text]] = [
        [case, _outcome(outcome), ", ".join(map(str, repeats)), detail]
        for case, outcome, detail, repeats in failures(report.trials)
    ]
    rows += [[case, _outcome("skipped"), "", reason] for case, reason in report.skipped]
    rows += [[damage.path, _outcome("damaged"), "", damage.sentence] for damage in report.damaged]
    title = _("Failed and skipped")
    if not rows:
        return Section(
            title, [Sentence(_("Nothing failed and nothing was skipped."))], frozenset({"markdown"})
        )
    header = [_("case"), _("outcome"), _("repeats"), _("reason")]
    return Section(title, [Table(header, rows, sortable=False, looks={3: "reason"})], ON_PAPER)
