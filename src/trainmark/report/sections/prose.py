"""The few whole sentences of a report."""

from __future__ import annotations

from trainmark.measure.comparison import framework_comparisons
from trainmark.pages import number
from trainmark.report.document import Document
from trainmark.report.format.words import Lang, words


def summary(document: Document, lang: Lang) -> str:
    """The run in one sentence."""
    ok = sum(trial.outcome == "ok" for trial in document.trials)
    return words(lang)["summary"].format(
        results=len(document.results),
        trials=len(document.trials),
        ok=ok,
        failed=len(document.trials) - ok,
        skipped=len(document.skipped),
    )


def method(document: Document, lang: Lang) -> list[str]:
    """What the figures mean, in a few sentences."""
    t = words(lang)
    trials = span([result.n for result in document.results])
    warmup = span([result.warmup_steps for result in document.results])
    return [
        t["method_figure"],
        t["method_trials"].format(trials=trials),
        t["method_warmup"].format(warmup=warmup),
        t["method_speedup"],
        *([t["method_finish"]] if any(result.finish for result in document.results) else []),
        *([t["method_frameworks"]] if framework_comparisons(document.results) else []),
        t["method_doubts"],
    ]


def span(values: list[int]) -> str:
    """`5`, or `3–5` where they differ."""
    if not values:
        return number.MISSING
    return str(min(values)) if min(values) == max(values) else f"{min(values)}–{max(values)}"
