"""An explanation as one HTML file that needs no network: the answer, its tables, and a timeline to zoom."""

from __future__ import annotations

from jinja2 import Environment
from markupsafe import Markup

from trainmark.base.text import one_line, visible
from trainmark.explain.difference import ExplanationDifference
from trainmark.explain.explanation import Explanation
from trainmark.explain.report import bars, difference_text, figures, sentences, tables
from trainmark.explain.report.language.chinese import sentence
from trainmark.explain.report.language.words import class_name, explain_words, holder_name
from trainmark.explain.report.look import kind_look, look
from trainmark.explain.report.timeline import timeline_data
from trainmark.measure.quantity import rate_words
from trainmark.pages import number
from trainmark.report.format import templating
from trainmark.report.format.table import Table
from trainmark.report.format.words import Lang
from trainmark.view.chart.axis import linear, rows
from trainmark.view.chart.model import Chart, Dots, Figure, Line, Mark, Panel, Plot, Whiskers
from trainmark.view.frame import embedded, frame

STYLE, SCRIPT = "explain.css", "timeline.js"
ROW = 34
AIR = 0.06


def render(explanation: Explanation, lang: Lang = "en", trace: str | None = None) -> str:
    """`trace` is the name of the Perfetto trace that lies beside the page."""
    w, subject, timeline = explain_words(lang), explanation.subject, timeline_data(explanation, lang)
    refused = explanation.agreement.refusal is not None
    rate, link = figures.samples_per_second(explanation), explanation.peaks.link
    idle, memory = explanation.idle_nanoseconds, explanation.memory
    spans = tables.spans_table(explanation, lang)
    return (
        _environment(lang)
        .get_template("explain.html.j2")
        .render(
            **frame(STYLE, SCRIPT),
            w=w,
            subject=subject,
            about=sentences.about_line(explanation, lang),
            step_time=sentences.duration(explanation.step_seconds),
            rate=number.throughput(rate) if rate else "",
            idle_share=number.percent(idle / explanation.total) if explanation.total and not refused else "",
            refusal=sentences.refusal_sentence(explanation, lang) if refused else "",
            doubts=sentences.doubt_sentences(explanation, lang),
            measured=sentences.rate_sentence(explanation, lang) if explanation.measured_rate else "",
            where=sentences.where_sentence(explanation, lang),
            first=sentences.first_sentence(explanation, lang),
            agreement=sentences.agreement_words(explanation, lang),
            segments=[] if refused else bars.stacked(explanation, lang),
            step=tables.step_table(explanation, lang),
            looks=[*(kind_look(part.kind, part.name) for part in figures.parts(explanation)), ""],
            advice=[
                (
                    sentence(advice.sentence, lang),
                    sentences.gain_words(advice, lang),
                    sentence(advice.how.strip(), lang),
                    advice.is_line,
                    sentences.is_certain(advice),
                )
                for advice in explanation.advice
            ],
            idle=tables.EMPTY if refused else tables.idle_table(explanation, lang),
            evidence=[
                [sentence(text, lang) for text in own.evidence] for own in tables.idle_by_time(explanation)
            ],
            after_measured=explanation.agreement.measured is not None,
            floors=[] if refused else bars.floors(explanation, lang),
            floor_note=sentences.floor_sentence(explanation, lang),
            changes=[
                (sentence(change.why, lang), sentence(change.how, lang), change.is_line)
                for change in explanation.what_ifs
            ],
            basis=sentences.basis_sentence(explanation, lang),
            what_if=tables.what_if_table(explanation, lang),
            what_if_plot=what_if_plot(explanation, lang),
            timeline=timeline,
            timeline_json=Markup(embedded(timeline)) if timeline else "",
            timeline_steps=len(explanation.timeline.steps),
            timeline_label=_timeline_label(explanation, w),
            thinned=_thinned(explanation, w),
            longest_spans=w["longest_spans"].format(count=len(spans.rows)),
            spans=spans,
            trace=trace,
            trace_words=w["trace"].partition("{name}"),
            kernels=[] if refused else _kernels(explanation, lang),
            modules=tables.EMPTY if refused else tables.modules_table(explanation, None, lang),
            modules_title=tables.modules_title(explanation, lang),
            ranks=tables.EMPTY if refused else tables.ranks_table(explanation, lang),
            buckets=tables.buckets_table(explanation, lang),
            link=w["link_note"].format(link=rate_words(link)) if link else "",
            memory=memory,
            suggestions=[sentence(text, lang) for text in memory.suggestions] if memory else [],
            memory_sentence=sentences.memory_sentence(explanation, lang),
            memory_segments=_memory(explanation, lang),
            memory_table=tables.memory_table(explanation, lang),
            notes=[sentence(note, lang) for note in explanation.notes],
            facts=explanation.facts,
        )
    )


def render_difference(difference: ExplanationDifference, lang: Lang = "en") -> str:
    w = explain_words(lang)
    low = bars.waterfall_axis(difference)[0]
    faster = difference.seconds_b <= difference.seconds_a
    return (
        _environment(lang)
        .get_template("explain_difference.html.j2")
        .render(
            **frame(STYLE),
            w=w,
            a=sentences.subject_line(difference.a, lang),
            b=sentences.subject_line(difference.b, lang),
            sentences=difference_text.sentences(difference, lang),
            verdict="reliable" if faster else "caution",
            waterfall=bars.waterfall(difference, lang),
            cut=w["axis_cut"].format(low=sentences.duration(low)) if low > 0 else "",
            table=difference_text.table(difference, lang),
            unit=difference_text.unit(difference, lang),
            notes=[sentence(note, lang) for note in difference.notes],
        )
    )


def what_if_plot(explanation: Explanation, lang: Lang) -> Plot | None:
    """The step that each change would give, with its interval; what was verified as a ring."""
    w, changes = explain_words(lang), explanation.what_ifs
    if not changes:
        return None
    now = 1000 * explanation.step_seconds
    places = [float(place) for place in range(len(changes))]
    predicted = [1000 * change.seconds for change in changes]
    bounds = [(1000 * change.low, 1000 * change.high) for change in changes]
    verified = [
        (place, 1000 * change.verified.seconds)
        for place, change in zip(places, changes, strict=True)
        if change.verified
    ]
    low, high = [pair[0] for pair in bounds], [pair[1] for pair in bounds]
    texts = [
        f"{sentence(change.title, lang)}: {number.significant(value, 4)} ms {number.bounds(*pair)}"
        for change, value, pair in zip(changes, predicted, bounds, strict=True)
    ]
    marks: list[Mark] = [
        Line("muted", x=[now, now], y=[-0.5, len(changes) - 0.5], dash=True),
        Whiskers("t0", at=places, low=low, high=high, flat=True, width=5),
        Dots("t0", x=predicted, y=places, texts=texts, radius=4),
    ]
    if verified:
        marks.append(
            Dots(
                "t1",
                x=[value for _, value in verified],
                y=[place for place, _ in verified],
                texts=[f"{w['verified']} {number.significant(value, 4)} ms" for _, value in verified],
                shape="ring",
                radius=6,
            )
        )
    reach = [now, *low, *high, *(value for _, value in verified)]
    across = linear(reach, w["unit_ms"])
    key = [("muted", f"{w['sum']} {number.significant(now, 4)} ms"), ("t0", w["prediction"])]
    key += [("t1", w["verified"])] if verified else []
    panel = Panel(rows([sentence(change.title, lang) for change in changes]), marks, ROW * len(changes))
    return Plot("what_if", [Figure("", {"": Chart(across, [panel], key)})])


def _kernels(explanation: Explanation, lang: Lang) -> list[tuple[str, str, str, Table]]:
    """Each class with its kernels, the longest class first."""
    texts = figures.part_texts(explanation)
    return [
        (
            class_name(part.name, lang),
            look(part.name),
            texts[part.kind, part.name][1],
            tables.class_kernels_table(explanation, part.of_class, lang),
        )
        for part in figures.parts(explanation)
        if part.of_class and part.of_class.kernels
    ]


def _memory(explanation: Explanation, lang: Lang) -> list[bars.Segment]:
    parts = explanation.memory.parts if explanation.memory else ()
    whole = sum(part.bytes for part in parts)
    kinds = list(dict.fromkeys(part.kind for part in parts))
    return [
        bars.Segment(
            f"k-{kinds.index(part.kind) % 9}",
            100 * part.bytes / whole,
            " ".join(filter(None, (holder_name(part.kind, lang), sentence(part.name or "", lang)))),
            number.percent(part.bytes / whole),
            sentences.gibibytes(part.bytes),
        )
        for part in sorted(parts, key=lambda part: -part.bytes)
        if part.bytes > 0
    ]


def _timeline_label(explanation: Explanation, w: dict[str, str]) -> str:
    timeline = explanation.timeline
    lanes = len({span.lane for span in timeline.spans})
    return w["timeline_label"].format(steps=len(timeline.steps), spans=len(timeline.spans), lanes=lanes)


def _thinned(explanation: Explanation, w: dict[str, str]) -> str:
    count = explanation.timeline.thinned
    return w["thinned"].format(count=f"{count:,}") if count else ""


def _environment(lang: Lang) -> Environment:
    env = templating.environment(lang, html=True)
    env.filters.update(one_line=one_line, visible=visible, unbroken=_unbroken)
    return env


def _unbroken(text: str) -> str:
    """Keep a number and its per-cent sign on one line."""
    return one_line(text).replace(" %", "\u00a0%").replace(" ×", "\u00a0×")
