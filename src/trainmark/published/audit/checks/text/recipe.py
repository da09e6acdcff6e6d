"""The recipe that a report follows against the commands and logs that it shows."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from math import isclose
from pathlib import Path
from typing import Any

from trainmark.published.audit.claims.shown_logs import ShownLog, shown_logs
from trainmark.published.audit.finding import Finding, Severity
from trainmark.published.audit.report.report import Report

RECIPE = Path(__file__).with_name("recipe.yaml")
MOMENTUM_IN_PROSE = re.compile(r"(?:momentum|动量)[^\d.]{0,12}(\d?\.\d{1,9})(?!\d)", re.I)


def check(report: Report) -> Iterator[Finding]:
    momenta = {
        float(match[1]): passage.line
        for passage in report.prose
        if (match := MOMENTUM_IN_PROSE.search(passage.text[:2000]))
    }
    stated = next(iter(momenta.items())) if len(momenta) == 1 else None
    for log in shown_logs(report):
        momentum = log.first("momentum")
        expected, source = _expected(log, stated)
        if momentum and expected is not None and not isclose(float(momentum.value), expected):
            yield Finding(
                "recipe-contradicted",
                Severity.WARNING,
                report.where(momentum.line),
                claimed=f"momentum {momentum.value}",
                derived=f"momentum {expected:g}",
                message=f"{source} has a momentum of {expected:g}.",
            )


def _expected(log: ShownLog, stated: tuple[float, int] | None) -> tuple[float | None, str]:
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

    recipe: dict[str, Any] = yaml.safe_load(RECIPE.read_text(encoding="utf-8"))
    return recipe
