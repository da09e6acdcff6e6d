"""The rule that a report states against the one it used, and against the steps that its runs had."""

from __future__ import annotations

from collections.abc import Iterator

from trainmark.published.audit.claims.printed import PrintedCase, printed_results
from trainmark.published.audit.claims.rules import Rule, stated_repeats, stated_rules, used_rules
from trainmark.published.audit.claims.shown_logs import shown_logs
from trainmark.published.audit.finding import Finding, Severity
from trainmark.published.audit.report.report import Report

# Below this a window holds hardly more than its own edges.
FEWEST_ITERATIONS = 20


def check(report: Report) -> Iterator[Finding]:
    stated, used = list(stated_rules(report)), list(used_rules(report))
    yield from _stated_against_used(report, stated, used)
    yield from _steps_of_runs(report, stated, used)
    yield from _repeats(report)
    for rule in (*stated, *used):
        if rule.measured is not None and rule.measured < FEWEST_ITERATIONS:
            yield Finding(
                "window-too-short",
                Severity.WARNING,
                report.where(rule.line),
                claimed=f"{rule.measured} iterations measured",
                derived=f"at least {FEWEST_ITERATIONS}",
                message=f"a window of {rule.measured} iterations says little about steady training.",
            )


def _stated_against_used(report: Report, stated: list[Rule], used: list[Rule]) -> Iterator[Finding]:
    if len({rule.total for rule in stated}) != 1 or len({(rule.total, rule.measured) for rule in used}) != 1:
        return
    claim, did = stated[0], used[0]
    differs = claim.total != did.total or (claim.measured is not None and claim.measured != did.measured)
    if differs:
        yield Finding(
            "rule-mismatch",
            Severity.ERROR,
            report.where(claim.line),
            claimed=_words(claim),
            derived=_words(did),
            message=f"the command on line {did.line} measures {_words(did)}.",
        )


def _steps_of_runs(report: Report, stated: list[Rule], used: list[Rule]) -> Iterator[Finding]:
    """A run that stops after fewer iterations than its rule needs cannot have been measured by it."""
    totals = [(rule.total, rule.line) for rule in (*stated, *used) if rule.total]
    if not totals:
        return
    needed, rule_line = max(totals)
    for log in shown_logs(report):
        limit = log.first("steps")
        if limit and 0 < int(limit.value) < needed:
            yield Finding(
                "too-few-iterations",
                Severity.ERROR,
                report.where(limit.line),
                claimed=f"{limit.value} iterations a run",
                derived=f"{needed} iterations",
                message=f"the rule on line {rule_line} needs {needed} iterations; the run stops before.",
            )


def _repeats(report: Report) -> Iterator[Finding]:
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
            yield Finding(
                "repeats-mismatch",
                Severity.ERROR,
                report.where(cases[0].line),
                claimed=f"{count} runs (line {line})",
                derived=f"{listed} runs",
                message=f"{listed} runs of {', '.join(case.topology for case in cases)} are listed.",
            )


def _words(rule: Rule) -> str:
    return f"{rule.total} iterations" + (f", the last {rule.measured}" if rule.measured is not None else "")
