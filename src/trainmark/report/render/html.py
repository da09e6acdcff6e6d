"""The report as one HTML file that needs no network: figures, tables and plots."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict

from trainmark.base.text import one_line, visible
from trainmark.logs.ledger.standing import in_words
from trainmark.measure.figure import Result, TimeShares
from trainmark.measure.scaling import ScalingKind, ScalingPoint
from trainmark.pages.fabric import fabric_blocks
from trainmark.report.answer.answer import answer
from trainmark.report.answer.doubts import marks
from trainmark.report.document import Document
from trainmark.report.format import templating
from trainmark.report.format.published_words import LANGUAGES, published_lines
from trainmark.report.format.words import Lang, words
from trainmark.report.plots import axis, plots
from trainmark.report.plots.frameworks import SERIES
from trainmark.report.plots.speedup import SERIES as STRONG
from trainmark.report.render.scaling_markdown import holding_back
from trainmark.report.sections import contrast, cost, finish, light, utilisation
from trainmark.report.sections.environment import missing_facts, sections
from trainmark.report.sections.frameworks import published_figure, tables_of
from trainmark.report.sections.group import by_case, failures
from trainmark.report.sections.host_samples import with_host_named
from trainmark.report.sections.prose import method, summary
from trainmark.report.sections.scaling import (
    LOSSES,
    SHARES,
    ScalingTable,
    case_times,
    scaling_tables,
    without_breakdown,
)
from trainmark.view.chart.model import AT_FIRST
from trainmark.view.frame import frame
from trainmark.view.html import fragment

LONG_TABLE = 40


def render(document: Document, lang: Lang = "en") -> str:
    t = words(lang)
    shown = answer(document, lang)
    lines = published_lines(document.published, lang)
    environment = sections(document.environment, lang)
    finishes = finish.finish_rows(document.results)
    lights = light.light_rows(document)
    counted = utilisation.named_results(document.results)
    drawn = plots(with_host_named(document, t), t)
    env = templating.environment(lang, html=True)
    env.filters.update(visible=visible, one_line=one_line)
    return env.get_template("report.html.j2").render(
        document=document,
        summary=summary(document, lang),
        method=method(document, lang),
        **frame(),
        plots=drawn,
        finishes=finishes,
        finish_columns=finish.columns(finishes, lang),
        finish_header=finish.header,
        target_words=finish.target_words,
        lights=lights,
        arithmetic=utilisation.figures_table(counted, t) if counted else None,
        conventions=utilisation.conventions_table(counted, t) if counted else None,
        contrast=contrast.contrast_table(document, lang),
        contrast_note=contrast.contrast_note(lang),
        cost=cost.cost_table(document, t),
        cost_note=cost.cost_note(document, t),
        light_columns=light.columns(lights),
        light_header=light.header,
        light_note=light.note(lights, t),
        frameworks=tables_of(document),
        published_figure=published_figure,
        in_words=lambda standing: in_words(standing, LANGUAGES[lang]),
        series=SERIES,
        strong=STRONG,
        scaled=by_kind(scaling_tables(document.results, t)),
        times=case_times(document.results),
        no_breakdown=without_breakdown(document.results),
        losses=LOSSES,
        shares=SHARES,
        loss_parts=loss_parts,
        share_parts=share_parts,
        holding_back=holding_back,
        fabric=fragment(list(fabric_blocks(document.fabric)), lang, 3) if document.fabric else "",
        answer=shown,
        varied=axis.axis_title(varied.field, t) if (varied := axis.varied_axis(document.results)) else "",
        doubts_of=lambda result: marks(result, shown.doubts),
        published=[(row.name, lines[row.result.key]) for row in shown.rows if row.result.key in lines],
        columns=columns(document.results),
        environment=environment,
        missing_facts=missing_facts(environment, t),
        cases=by_case(document.trials),
        failures=failures(document.trials),
        long=LONG_TABLE,
        at_first=AT_FIRST,
    )


def columns(results: Sequence[Result]) -> frozenset[str]:
    """The optional columns for which some result has a figure."""
    known = {
        "memory": any(result.memory_bytes is not None for result in results),
        "data_wait": any(result.data_wait_share is not None for result in results),
        "per_joule": any(result.samples_per_joule is not None for result in results),
        "mfu": any(result.utilisation is not None for result in results),
    }
    return frozenset(name for name, present in known.items() if present)


def by_kind(tables: Sequence[ScalingTable]) -> dict[str, list[ScalingTable]]:
    return {kind.value: [table for table in tables if table.series.kind is kind] for kind in ScalingKind}


def loss_parts(point: ScalingPoint) -> list[tuple[str, float]]:
    """The efficiency and the losses as widths of one bar; gains have none, so the rest is scaled to fit."""
    shares = {"efficiency": point.efficiency.value, **(asdict(point.loss) if point.loss else {})}
    parts = [(name, max(0.0, shares[name])) for name in ("efficiency", *LOSSES)]
    whole = sum(width for _, width in parts)
    return [(name, width / whole) for name, width in parts]


def share_parts(shares: TimeShares) -> list[tuple[str, float]]:
    return list(asdict(shares).items())
