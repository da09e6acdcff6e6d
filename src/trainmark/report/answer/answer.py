"""What a reader sees first: the subject, the figures, the verdict; then one row for each case."""

from __future__ import annotations

from dataclasses import dataclass, replace

from trainmark.measure.figure import Result
from trainmark.measure.reliability import Reliability, run_verdict
from trainmark.pages import label, number
from trainmark.report.answer.doubts import DoubtNote, doubt_notes, marks
from trainmark.report.answer.sources import source_sentences
from trainmark.report.answer.subject import subject
from trainmark.report.answer.verdict import verdict_sentence
from trainmark.report.document import Document
from trainmark.report.format.words import Lang, words
from trainmark.report.sections.contrast import contrast_sentences
from trainmark.report.sections.finish import target_words
from trainmark.report.sections.group import Group, by_series, headlines


@dataclass(frozen=True)
class CaseRow:
    """One result; `series` is its case without the topology, `doubts` are the notes that concern it."""

    series: str
    result: Result
    doubts: tuple[DoubtNote, ...]

    @property
    def name(self) -> str:
        return f"{self.series} {self.result.key.topology}"

    @property
    def unit(self) -> str:
        return label.rate_unit(self.result.unit)

    @property
    def scales(self) -> bool:
        """Whether its speed-up says anything: that of one device over itself does not."""
        return self.result.key.devices > 1 and self.result.speedup is not None


@dataclass(frozen=True)
class Answer:
    """The first screen; `headlines` are the few figures of `rows` to read first."""

    subject: str
    reliability: Reliability
    verdict: str
    headlines: tuple[tuple[Group, Result], ...]
    rows: tuple[CaseRow, ...]
    doubts: tuple[DoubtNote, ...]
    shared_facts: str
    sources: tuple[str, ...]
    """How steps were seen and samples counted, a sentence for each way."""
    not_all: str
    """`4 of 6 results` where the headlines leave some out."""
    contrasts: tuple[str, ...] = ()
    """A sentence for each case that is compared with a baseline."""

    @property
    def scales(self) -> bool:
        return any(row.result.key.devices > 1 for row in self.rows)

    @property
    def unit(self) -> str:
        """The unit of all rates; empty where they have several."""
        units = {row.unit for row in self.rows}
        return units.pop() if len(units) == 1 else ""


def answer(document: Document, lang: Lang = "en") -> Answer:
    groups = by_series(document.results)
    rows = [CaseRow(group.name, result, ()) for group in groups for result in group.results]
    notes = doubt_notes([(row.name, row.result) for row in rows], lang)
    verdict = run_verdict(document.results)
    shown = headlines(groups)
    return Answer(
        subject=subject(document.results, lang),
        reliability=verdict.reliability,
        verdict=verdict_sentence(verdict, lang),
        headlines=shown,
        rows=tuple(replace(row, doubts=marks(row.result, notes)) for row in rows),
        doubts=notes,
        shared_facts=label.shared_facts([result.key for result in document.results], lang),
        sources=source_sentences(document.results, lang),
        not_all=words(lang)["headline_count"].format(shown=len(shown), results=len(rows))
        if len(shown) < len(rows)
        else "",
        contrasts=tuple(contrast_sentences(document, lang)),
    )


def headline_lines(shown: Answer, lang: Lang = "en") -> list[str]:
    """Return the comparisons, or the headline figures, each under its case where there are several."""
    t = words(lang)
    if shown.contrasts:
        return list(shown.contrasts)
    if len(shown.rows) == 1:
        return [figure_text(shown.rows[0].result, t)]
    lines = [
        f"{group.name} {result.key.topology}: {figure_text(result, t)}" for group, result in shown.headlines
    ]
    return [*lines, f"({shown.not_all})"] if shown.not_all else lines


def figure_text(result: Result, t: dict[str, str]) -> str:
    """Return `6,154.7 images/s [6,130, 6,173], n = 6`, after the time to train where there is one."""
    interval = number.interval(result.interval) if result.interval else t["no_interval"]
    rate = f"{number.throughput(result.throughput)} {label.rate_unit(result.unit)} {interval}, n = {result.n}"
    finish = result.finish
    if finish is None or finish.time2train is None:
        return rate
    target = t["to_target"].format(target=target_words(finish))
    bounds = f" {number.clock_interval(finish.interval)}" if finish.interval else ""
    return f"{number.clock(finish.time2train)} {target}{bounds}; {rate}"
