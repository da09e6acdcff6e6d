"""The report as a Markdown page, in the form published benchmark reports take, with what those leave out."""

from __future__ import annotations

import re
from dataclasses import dataclass

from trainmark.pages import number
from trainmark.pages.fabric import fabric_blocks
from trainmark.pages.label import facts
from trainmark.report.answer.answer import Answer, CaseRow, answer, headline_lines
from trainmark.report.answer.doubts import DoubtNote
from trainmark.report.document import Document
from trainmark.report.format import templating
from trainmark.report.format.doubt_words import doubt_name, severity_name
from trainmark.report.format.published_words import published_lines
from trainmark.report.format.table import Table
from trainmark.report.format.words import Lang, outcome_name, words
from trainmark.report.render import framework_markdown, scaling_markdown
from trainmark.report.sections import contrast, cost, finish, framework_cells, light, utilisation
from trainmark.report.sections.environment import Section, sections
from trainmark.report.sections.frameworks import FrameworkTable, tables_of
from trainmark.report.sections.group import CaseTrials, by_case, failures
from trainmark.report.sections.prose import method, summary
from trainmark.report.sections.scaling import ScalingTable, case_times, scaling_tables, without_breakdown
from trainmark.view import markdown
from trainmark.view.markup import code, fence, plain

# After the case come the columns of the published tables, under the names they have there.
PUBLISHED = ("node_num", "gpu_num_per_node", "batch_size_per_device")


BOUNDS = re.compile(r"\\\[([\d,.: ]+)\\\]")


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
        shown = answer(document, self.lang)
        counted = utilisation.named_results(document.results)
        compared = contrast.contrast_table(document, self.lang)
        return {
            "title": plain(document.title),
            "subject": plain(shown.subject),
            "figures": "<br>\n".join(map(_with_bounds, headline_lines(shown, self.lang))),
            "verdict": plain(shown.verdict),
            "about": plain(document.about),
            "summary": summary(document, self.lang),
            "made_by": t["made_by"].format(version=plain(document.version), created=plain(document.created)),
            "finishes": self.finishes(),
            "cost": costs.markdown() if costs else "",
            "cost_note": plain(cost.cost_note(document, t)),
            "lights": light.table(lights, t).markdown() if lights else "",
            "light_note": plain(light.note(lights, t)),
            "arithmetic": utilisation.figures_table(counted, t).markdown() if counted else "",
            "conventions": utilisation.conventions_table(counted, t).markdown() if counted else "",
            "frameworks": [self.frameworks(table) for table in tables_of(document)],
            "contrast": compared.markdown() if compared else "",
            "contrast_note": contrast.contrast_note(self.lang),
            "results": self.results(shown) if shown.rows else "",
            "shared_facts": plain(shown.shared_facts),
            "sources": [plain(sentence) for sentence in shown.sources],
            "doubts": "<br>\n".join(self.doubt(note) for note in shown.doubts),
            "published": self.published(shown),
            "scaled": [self.scaled(scaling_table) for scaling_table in scaling_tables(document.results, t)],
            "times": scaling_markdown.times(times, t) if (times := case_times(document.results)) else "",
            "no_breakdown": ", ".join(map(plain, without_breakdown(document.results))),
            "fabric": self._fabric(),
            "environment": self.environment(),
            "method": method(document, self.lang),
            "run_command": fence(document.command, "shell"),
            "suite": fence(document.suite, "yaml"),
            "cases": [self.command(case) for case in cases],
            "trials": self.trials(),
            "failed": self.failed(),
        }

    def _fabric(self) -> str:
        fabric = self.document.fabric
        return markdown.fragment(list(fabric_blocks(fabric)), self.lang, 3) if fabric else ""

    def results(self, shown: Answer) -> str:
        """One row for each case."""
        t = self.t
        rate = shown.unit or t["throughput"]
        ratios = (t["speedup"], t["efficiency_column"]) if shown.scales else ()
        header = (t["case"], *PUBLISHED, rate, *ratios, t["interval"], "n", t["memory"], t["doubts"])
        doubts = len(header) - 1
        rows = [self.row(row, shown) for row in shown.rows]
        right = frozenset(range(1, doubts))
        # All but the case and the rate, with its unit, are numbers and words of our own.
        trusted = frozenset(range(len(header))) - {0, 1 + len(PUBLISHED)}
        return Table(header, rows, right, trusted=trusted).markdown()

    def row(self, row: CaseRow, shown: Answer) -> tuple[str, ...]:
        result, key = row.result, row.result.key
        unit = "" if shown.unit else f" {row.unit}"
        marks = (f"{doubt_name(note.code, self.lang)}<sup>{note.number}</sup>" for note in row.doubts)
        return (
            row.name,
            str(key.nodes),
            str(key.devices_per_node),
            number.MISSING if key.batch_per_device is None else str(key.batch_per_device),
            f"{number.throughput(result.throughput)}{unit}",
            *(self.ratios(row) if shown.scales else ()),
            number.interval(result.interval),
            str(result.n),
            number.gibibytes(result.memory_bytes),
            ", ".join(marks),
        )

    def ratios(self, row: CaseRow) -> tuple[str, str]:
        """Speed-up and efficiency; one device is the baseline, where it was measured."""
        speedup, efficiency = row.result.speedup, row.result.efficiency
        if speedup is None or efficiency is None:
            return number.MISSING, number.MISSING
        if not row.scales:
            return "1", "100 %"
        bounds = number.ratio_interval(speedup.interval) if speedup.interval else ""
        return f"{number.ratio(speedup.value)} {bounds}".strip(), number.percent(efficiency.value)

    def doubt(self, note: DoubtNote) -> str:
        name = f"{doubt_name(note.code, self.lang)} ({severity_name(note.severity, self.lang)})"
        return f"<sup>{note.number}</sup> {plain(name)}: {plain(' '.join(note.lines))}"

    def published(self, shown: Answer) -> str:
        lines = published_lines(self.document.published, self.lang)
        named = ((row.name, lines[row.result.key]) for row in shown.rows if row.result.key in lines)
        return "\n".join(f"- {plain(name)}: {plain(line)}" for name, line in named)

    def finishes(self) -> str:
        rows = finish.finish_rows(self.document.results)
        return finish.table(rows, self.lang).markdown() if rows else ""

    def frameworks(self, compared: FrameworkTable) -> GroupText:
        return GroupText(
            plain(compared.name),
            plain(facts(compared.key, self.lang)),
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

    def environment(self) -> list[dict[str, object]]:
        """Return the facts that are known; missing ones would only be in the way."""
        all_sections = sections(self.document.environment, self.lang)
        return [self.section(section) for section in all_sections if section.is_known]

    def section(self, section: Section) -> dict[str, object]:
        lines = [
            f"- {plain(label)}: {plain(self.fact(value))}" if label else f"- {plain(self.fact(value))}"
            for label, value in section.known
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


def _with_bounds(line: str) -> str:
    """Escape all but the brackets around the bounds of an interval."""
    return BOUNDS.sub(r"[\1]", plain(line))


def numbers(repeats: tuple[int, ...]) -> str:
    return ", ".join(map(str, repeats))
