"""The report as a Markdown page, in the form published benchmark reports take, with what those leave out."""

from __future__ import annotations

from dataclasses import dataclass

from trainmark.measure.doubt import Doubt
from trainmark.measure.figure import Result
from trainmark.report.document import Document
from trainmark.report.fabric import text as fabric_text
from trainmark.report.format import number, templating
from trainmark.report.format.label import facts, rate_unit
from trainmark.report.format.markup import code, fence, plain
from trainmark.report.format.table import Table
from trainmark.report.format.words import Lang, doubt_name, outcome_name, words
from trainmark.report.render import framework_markdown, scaling_markdown
from trainmark.report.sections import cost, finish, framework_cells, light
from trainmark.report.sections.environment import Section, sections
from trainmark.report.sections.frameworks import FrameworkTable, tables_of
from trainmark.report.sections.group import CaseTrials, Group, by_case, by_series, failures
from trainmark.report.sections.prose import method, summary
from trainmark.report.sections.scaling import ScalingTable, case_times, scaling_tables, without_breakdown

# The first five columns are those of the published tables, under the names they have there.
PUBLISHED = ("node_num", "gpu_num_per_node", "batch_size_per_device")
NUMBERS = frozenset({0, 1, 2, 3, 4, 6, 7, 8})


@dataclass(frozen=True)
class GroupText:
    name: str
    facts: str
    table: str
    notes: str


def render(document: Document, lang: Lang = "en") -> str:
    page = _Page(document, lang)
    return templating.environment(lang, html=False).get_template("report.md.j2").render(page.context())


class _Page:
    """The pieces of one page in one language."""

    def __init__(self, document: Document, lang: Lang) -> None:
        self.document = document
        self.lang = lang
        self.t = words(lang)

    def context(self) -> dict[str, object]:
        document, t = self.document, self.t
        cases, lights = by_case(document.trials), light.light_rows(document)
        costs = cost.cost_table(document, t)
        return {
            "title": plain(document.title),
            "about": plain(document.about),
            "summary": summary(document, self.lang),
            "made_by": t["made_by"].format(version=plain(document.version), created=plain(document.created)),
            "finishes": self.finishes(),
            "cost": costs.markdown() if costs else "",
            "cost_note": plain(cost.cost_note(document, t)),
            "lights": light.table(lights, t).markdown() if lights else "",
            "light_note": plain(light.note(lights, t)),
            "frameworks": [self.frameworks(table) for table in tables_of(document)],
            "groups": [self.group(group) for group in by_series(document.results)],
            "scaled": [self.scaled(scaling_table) for scaling_table in scaling_tables(document.results, t)],
            "times": scaling_markdown.times(times, t) if (times := case_times(document.results)) else "",
            "untold": ", ".join(map(plain, without_breakdown(document.results))),
            "fabric": fabric_text.markdown(document.fabric) if document.fabric else "",
            "environment": [self.section(section) for section in sections(document.environment)],
            "method": method(document, self.lang),
            "run_command": fence(document.command, "shell"),
            "suite": fence(document.suite, "yaml"),
            "cases": [self.command(case) for case in cases],
            "trials": self.trials(),
            "failed": self.failed(),
        }

    def group(self, group: Group) -> GroupText:
        t = self.t
        notes: dict[Doubt, int] = {}
        for result in group.results:
            for doubt in result.doubts:
                notes.setdefault(doubt, len(notes) + 1)
        rate = rate_unit(group.results[0].unit)
        own = (t["interval"], "n", t["efficiency_column"], t["memory"], t["doubts"])
        header = (*PUBLISHED, rate, t["speedup"], *own)
        rows = [self.row(result, notes) for result in group.results]
        lines = [
            f"<sup>{mark}</sup> {plain(doubt_name(doubt.code, self.lang))}: {plain(doubt.message)}"
            for doubt, mark in notes.items()
        ]
        lines += [
            f"{result.key.topology}: {plain(line)}"
            for result in group.results
            if (line := self.document.published.get(result.key))
        ]
        return GroupText(
            plain(group.name),
            plain(facts(group.key)),
            Table(header, rows, NUMBERS, trusted=frozenset({0, 1, 2, 4, 5, 9})).markdown(),
            "<br>\n".join(lines),
        )

    def finishes(self) -> str:
        rows = finish.finish_rows(self.document.results)
        return finish.table(rows, self.lang).markdown() if rows else ""

    def frameworks(self, compared: FrameworkTable) -> GroupText:
        return GroupText(
            plain(compared.name),
            plain(compared.facts),
            framework_cells.table(compared, self.lang).markdown(),
            framework_markdown.notes(compared, self.lang),
        )

    def scaled(self, scaling_table: ScalingTable) -> GroupText:
        kind = self.t[f"{scaling_table.series.kind.value}_scaling"]
        return GroupText(
            f"{kind}: {plain(scaling_table.name)}",
            scaling_table.note,
            scaling_markdown.scaled(scaling_table, self.t),
            "",
        )

    def row(self, result: Result, notes: dict[Doubt, int]) -> tuple[str, ...]:
        key, batch = result.key, result.key.batch_per_device
        speedup, efficiency = result.speedup, result.efficiency
        bounds = number.ratio_interval(speedup.interval) if speedup and speedup.interval else ""
        marks = [f"{plain(doubt_name(d.code, self.lang))}<sup>{notes[d]}</sup>" for d in result.doubts]
        return (
            str(key.nodes),
            str(key.devices_per_node),
            number.MISSING if batch is None else str(batch),
            number.throughput(result.throughput),
            f"{number.ratio(speedup.value)} {bounds}".strip() if speedup else number.MISSING,
            number.interval(result.interval),
            str(result.n),
            number.percent(efficiency.value) if efficiency else number.MISSING,
            number.gibibytes(result.memory_bytes),
            ", ".join(marks),
        )

    def section(self, section: Section) -> dict[str, object]:
        def show(value: object) -> str:
            return plain(templating.fact(value, self.lang))

        lines = [
            f"- {plain(label)}: {show(value)}" if label else f"- {show(value)}"
            for label, value in section.facts
        ]
        parts = ["\n".join(lines)] if lines else []
        parts += [
            Table(table.header, [list(map(self.fact, row)) for row in table.rows]).markdown()
            for table in section.tables
        ]
        parts += [f"{plain(label)}\n\n{fence(text)}".strip() for label, text in section.blocks]
        return {"title": self.t.get(section.name) or plain(section.name), "parts": parts}

    def fact(self, value: object) -> str:
        return templating.fact(value, self.lang)

    def command(self, case: CaseTrials) -> dict[str, str]:
        differ = self.t["commands_differ"].format(count=len(case.commands)) if len(case.commands) > 1 else ""
        return {"name": plain(case.case), "command": fence(case.commands[0], "shell"), "note": differ}

    def trials(self) -> str:
        t = self.t
        names = ("case", "repeat", "outcome", "throughput", "within", "warmup", "retries", "reason")
        rows = [
            (
                code(trial.case),
                str(trial.repeat),
                outcome_name(trial.outcome, self.lang),
                number.throughput(trial.throughput),
                number.bounds(trial.low, trial.high),
                number.MISSING if trial.warmup_steps is None else str(trial.warmup_steps),
                str(trial.retries),
                trial.detail,
            )
            for trial in self.document.trials
        ]
        table = Table([t[name] for name in names], rows, frozenset({1, 3, 5, 6}), trusted=frozenset({0}))
        return table.markdown()

    def failed(self) -> str:
        rows = [
            (
                code(failure.case),
                outcome_name(failure.outcome, self.lang),
                numbers(failure.repeats),
                failure.detail,
            )
            for failure in failures(self.document.trials)
        ]
        rows += [
            (code(case), outcome_name(outcome, self.lang), "", reason)
            for case, outcome, reason in self.document.left_out
        ]
        if not rows:
            return self.t["none_failed"]
        header = [self.t[name] for name in ("case", "outcome", "repeats", "reason")]
        return Table(header, rows, trusted=frozenset({0})).markdown()


def numbers(repeats: tuple[int, ...]) -> str:
    return ", ".join(map(str, repeats))
