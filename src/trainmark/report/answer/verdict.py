"""The verdict on a result or a run as one sentence."""

from __future__ import annotations

from trainmark.measure.figure import Result
from trainmark.measure.reliability import WIDE_INTERVAL, Reliability, ReliabilityVerdict, result_verdict
from trainmark.pages import number
from trainmark.report.format.doubt_words import doubt_clause
from trainmark.report.format.words import Lang, words

# More than these are in the list of doubts; a sentence that names them all says nothing.
MOST_REASONS = 3


def verdict_sentence(verdict: ReliabilityVerdict, lang: Lang = "en") -> str:
    """Return `Reliable to ±0.4 %.`, or `Do not rely on this: the host was busy in 4 of 6 trials.`"""
    name = f"verdict_{_form(verdict)}"
    return words(lang)[name].format(
        within=number.percent(verdict.within),
        reasons=_reasons(verdict, lang),
        concerned=verdict.concerned,
        figures=verdict.figures,
    )


def doubts_verdict(result: Result) -> str:
    """Return the verdict on a result that has more against it than its interval; empty for any other."""
    verdict = result_verdict(result)
    if not verdict.reasons or verdict.reliability is Reliability.RELIABLE:
        return ""
    return verdict_sentence(verdict)


def _form(verdict: ReliabilityVerdict) -> str:
    if verdict.reliability is Reliability.NO_FIGURE:
        return "no_figure"
    if verdict.figures > 1:
        extent = "all" if verdict.concerned == verdict.figures else "some"
        return f"{extent}_{verdict.reliability.name.lower()}"
    if verdict.reliability is not Reliability.CAUTION:
        return verdict.reliability.name.lower()
    if verdict.within is None:
        return "provisional"
    if verdict.within > WIDE_INTERVAL:
        return "wide_caution" if verdict.reasons else "wide"
    return "caution"


def _reasons(verdict: ReliabilityVerdict, lang: Lang) -> str:
    t = words(lang)
    clauses = [doubt_clause(doubt, lang) for doubt in verdict.reasons]
    if not clauses:
        clauses = [t["verdict_no_interval" if verdict.within is None else "verdict_wide_interval"]]
    if len(clauses) > MOST_REASONS:
        more = t["verdict_more"].format(count=len(clauses) - MOST_REASONS)
        clauses = [*clauses[:MOST_REASONS], more]
    return t["reason_join"].join(clauses)
