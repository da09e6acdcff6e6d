"""How a report measured: the rule that it states, the recipe that it follows, and what it leaves out.

The rule is compared with the one used and with the steps of the runs, the recipe with commands and logs; left
out may be placeholders, blocks and rows, the environment, repeats and logs.
"""

from __future__ import annotations

import re
from functools import cache
from math import isclose
from pathlib import Path
from typing import Any

from trainmark.audit.excerpts import PrintedCase, ShownLog, printed_results, shown_logs
from trainmark.audit.finding import AuditFinding, Findings
from trainmark.audit.grid import all_series
from trainmark.audit.number import is_blank
from trainmark.audit.report import Report
from trainmark.audit.statements import MeasuringRule, stated_repeats, stated_rules, used_rules
from trainmark.audit.terms import names_device

# Below this a window holds hardly more than its own edges.
FEWEST_ITERATIONS = 20


def check_measuring_rule(report: Report) -> Findings:
    stated, used = list(stated_rules(report)), list(used_rules(report))
    yield from _check_stated_rule(stated, used)
    yield from _check_run_lengths(report, stated, used)
    yield from _check_repeats(report)
    for rule in (*stated, *used):
        if rule.measured is not None and rule.measured < FEWEST_ITERATIONS:
            derived = f"at least {FEWEST_ITERATIONS}"
            message = f"a window of {rule.measured} iterations says little about steady training."
            yield AuditFinding(
                "window-too-short", rule.line, f"{rule.measured} iterations measured", derived, message
            )


def _check_stated_rule(stated: list[MeasuringRule], used: list[MeasuringRule]) -> Findings:
    if len({rule.total for rule in stated}) != 1 or len({(rule.total, rule.measured) for rule in used}) != 1:
        return
    claim, did = stated[0], used[0]
    differs = claim.total != did.total or (claim.measured is not None and claim.measured != did.measured)
    if differs:
        message = f"the command on line {did.line} measures {_rule_words(did)}."
        yield AuditFinding("rule-mismatch", claim.line, _rule_words(claim), _rule_words(did), message)


def _check_run_lengths(report: Report, stated: list[MeasuringRule], used: list[MeasuringRule]) -> Findings:
    """A run that stops after fewer iterations than its rule needs cannot have been measured by it."""
    totals = [(rule.total, rule.line) for rule in (*stated, *used) if rule.total]
    if not totals:
        return
    needed, rule_line = max(totals)
    for log in shown_logs(report):
        limit = log.first("steps")
        if limit and 0 < int(limit.value) < needed:
            derived = f"{needed} iterations"
            message = f"the rule on line {rule_line} needs {needed} iterations; the run stops before."
            yield AuditFinding(
                "too-few-iterations", limit.line, f"{limit.value} iterations a run", derived, message
            )


def _check_repeats(report: Report) -> Findings:
    repeats = {count: line for line, count in stated_repeats(report)}
    if len(repeats) != 1:
        return
    (count, line) = next(iter(repeats.items()))
    for result in printed_results(report):
        by_count: dict[int, list[PrintedCase]] = {}
        for case in result.cases:
            if case.runs and len(case.runs) != count:
                by_count.setdefault(len(case.runs), []).append(case)
        for listed, cases in by_count.items():
            message = f"{listed} runs of {', '.join(case.topology for case in cases)} are listed."
            yield AuditFinding(
                "repeats-mismatch", cases[0].line, f"{count} runs (line {line})", f"{listed} runs", message
            )


def _rule_words(rule: MeasuringRule) -> str:
    return f"{rule.total} iterations" + (f", the last {rule.measured}" if rule.measured is not None else "")


RECIPE_FILE = Path(__file__).with_name("recipe.yaml")
MOMENTUM_IN_PROSE = re.compile(r"(?:momentum|动量)[^\d.]{0,12}(\d?\.\d{1,9})(?!\d)", re.I)


def check_recipe(report: Report) -> Findings:
    momenta = {
        float(match[1]): passage.line
        for passage in report.prose
        if (match := MOMENTUM_IN_PROSE.search(passage.text[:2000]))
    }
    stated = next(iter(momenta.items())) if len(momenta) == 1 else None
    for log in shown_logs(report):
        momentum = log.first("momentum")
        expected, source = _expected_momentum(log, stated)
        if momentum and expected is not None and not isclose(float(momentum.value), expected):
            derived = f"momentum {expected:g}"
            message = f"{source} has a momentum of {expected:g}."
            yield AuditFinding(
                "recipe-contradicted", momentum.line, f"momentum {momentum.value}", derived, message
            )


def _expected_momentum(log: ShownLog, stated: tuple[float, int] | None) -> tuple[float | None, str]:
    if stated:
        return stated[0], f"the text on line {stated[1]}"
    recipe, decay = _recipe(), log.first("weight_decay")
    if (
        decay
        and _is_number(decay.value)
        and isclose(float(decay.value), recipe["weight_decay"], rel_tol=1e-3)
    ):
        return float(recipe["momentum"]), f"the recipe whose weight decay this is ({recipe['name']})"
    return None, ""


def _is_number(text: str) -> bool:
    return bool(re.fullmatch(r"\d{0,4}\.?\d{1,20}(?:e-?\d{1,3})?", text))


@cache
def _recipe() -> dict[str, Any]:
    import yaml

    recipe: dict[str, Any] = yaml.safe_load(RECIPE_FILE.read_text(encoding="utf-8"))
    return recipe


PLACEHOLDER = re.compile(r"\bTODO\b|\bFIXME\b|\bTBD\b|\[X{3,}\]|待补充|待完善", re.A)
EMPTY_LINK = re.compile(r"\[[^\[\]]{1,200}\]\(\s{0,4}\)")
SPEAKS_OF_LOGS = re.compile(r"\.log\b|日志|\blogs?\b|\.tar\.gz|\.tgz", re.I | re.A)
SPEAKS_OF_REPEATS = re.compile(
    r"\d ?次|\bmedian\b|\brepeat|\bruns\b|\btrials\b|中位|中值|median_speed", re.I | re.A
)
# A table with a heading is a table; only a whole report owes its reader the circumstances.
LEAST_REPORT_LINES = 40


def check_missing(report: Report) -> Findings:
    for passage in report.prose:
        text = passage.text[:2000]
        if match := PLACEHOLDER.search(text) or EMPTY_LINK.search(text):
            yield _missing_finding("placeholder", passage.line, match[0], "a place left to fill in.")
    for block in report.code:
        if not any(line.strip() for line in block.lines):
            yield _missing_finding("empty-block", block.line - 1, "a script or output", "the block is empty.")
    yield from _check_empty_rows(report)
    yield from _check_circumstances(report)


def _check_empty_rows(report: Report) -> Findings:
    """Rows that name a configuration and measure nothing."""
    for series in all_series(report):
        heads = [figure.column for row in series.rows for figure in row.of("throughput")]
        if not heads:
            continue
        for row in series.rows:
            if row.of("throughput") or row.of("speedup") or row.of("time_to_train"):
                continue
            if all(is_blank(row.cells[column].text) for column in set(heads)):
                message = "the row names a configuration and has no figure."
                yield _missing_finding("empty-row", row.line, row.cells[0].text or "a row", message)


def _check_circumstances(report: Report) -> Findings:
    length = len(report.prose) + len(report.headings) + sum(len(block.lines) for block in report.code)
    rates = [row.line for series in all_series(report) for row in series.rows if row.of("throughput")]
    if length < LEAST_REPORT_LINES or not rates:
        return
    if not names_device(report):
        yield _missing_finding(
            "missing-environment",
            rates[0],
            "a throughput",
            "no device is named: the figure compares with none.",
        )
    if not report.mentions(SPEAKS_OF_LOGS):
        yield _missing_finding("missing-logs", rates[0], "a throughput", "no log is given to check it by.")
    if not report.mentions(SPEAKS_OF_REPEATS):
        message = "the report does not say how often a figure was measured."
        yield _missing_finding("missing-repeats", rates[0], "a throughput", message)


def _missing_finding(code: str, line: int, claimed: str, message: str) -> AuditFinding:
    return AuditFinding(code, line, claimed, "nothing", message)
