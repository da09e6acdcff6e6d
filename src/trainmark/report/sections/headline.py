"""The one figure of a run that a list of runs shows, and what it costs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from trainmark.measure.cost import Cost, Price, cost_of
from trainmark.measure.figure import Result
from trainmark.pages import label, number
from trainmark.report.sections.group import Group, by_series, headlines


def headline(results: Sequence[Result]) -> tuple[Group, Result] | None:
    """Return the fastest of the widest results, with its series; None where no trial has a figure."""
    return max(headlines(by_series(results)), key=lambda pair: pair[1].throughput, default=None)


def frameworks(results: Sequence[Result]) -> list[str]:
    """Return each framework with its version, in the order of the results."""
    names = (" ".join(filter(None, (label.framework(r.key), r.key.framework_version))) for r in results)
    return list(dict.fromkeys(names))


def record(results: Sequence[Result], price: Price | None) -> dict[str, Any] | None:
    """The headline under the names of docs/scripts.md."""
    pair = headline(results)
    if pair is None:
        return None
    group, result = pair
    bounds = result.interval
    return {
        "case": f"{group.name} {result.key.topology}",
        "median": result.throughput,
        "low": bounds.low if bounds else None,
        "high": bounds.high if bounds else None,
        "confidence": bounds.confidence if bounds else None,
        "n": result.n,
        "unit": label.rate_unit(result.unit),
        **cost_record(cost_of(result, price)),
    }


def cost_record(cost: Cost) -> dict[str, float | None]:
    """The costs under the names that they have in every JSON."""
    names = {
        "per_million": "cost_per_million",
        "to_target": "cost_to_target",
        "kwh_per_million": "kwh_per_million",
    }
    return {names[name]: value for name, value in asdict(cost).items()}


def cells(results: Sequence[Result], price: Price | None) -> tuple[str, ...]:
    """Frameworks, cases, the headline with its interval and unit, and with a price its costs."""
    figure = record(results, price)
    if figure is None:
        return ("", str(len(results)), "", "", "", *(("",) * 3 if price else ()))
    bounds = number.bounds(figure["low"], figure["high"]) if figure["low"] is not None else ""
    names = ("cost_per_million", "cost_to_target", "kwh_per_million")
    costs = tuple(number.significant(figure[name], 3) for name in names) if price else ()
    shown = (number.throughput(figure["median"]), bounds, figure["unit"])
    return (", ".join(frameworks(results)), str(len(results)), *shown, *costs)
