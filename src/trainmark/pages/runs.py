"""What a list of runs says: the one figure of each that is read first, and what it costs."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping, Sequence
from math import isfinite
from typing import Any

from trainmark.measure.cost import Price, cost_of
from trainmark.measure.figure import Result
from trainmark.pages import label, number
from trainmark.pages.number import GIB, duration, significant, throughput
from trainmark.pages.run.record import cost_record
from trainmark.view.blocks import Table, Text
from trainmark.view.message import _

COSTS = ("cost_per_million", "cost_to_target", "kwh_per_million")
LISTED = tuple[Mapping[str, Any], Sequence[Result]]
"""A run as `store.overview` has it, and its results."""


def runs_record(listed: Sequence[LISTED], price: Price | None) -> list[dict[str, Any]]:
    """Return the runs under the names of docs/scripts.md."""
    return [
        {
            **run,
            "frameworks": _frameworks(results),
            "cases": len(results),
            "headline": headline_record(results, price),
        }
        for run, results in listed
    ]


def headline_record(results: Sequence[Result], price: Price | None) -> dict[str, Any] | None:
    """Return the fastest of the widest results; None where no trial has a figure."""
    widest = label.headlines(label.by_series(results))
    pair = max(widest, key=lambda pair: pair[1].throughput, default=None)
    if pair is None:
        return None
    group, result = pair
    bounds = result.interval
    return {
        "case": group.case(result),
        "median": result.throughput,
        "low": bounds.low if bounds else None,
        "high": bounds.high if bounds else None,
        "confidence": bounds.confidence if bounds else None,
        "n": result.n,
        "unit": label.rate_unit(result.unit),
        **cost_record(cost_of(result, price)),
    }


def runs_table(listed: Sequence[LISTED], price: Price | None) -> Table:
    header = [
        *(_("run"), _("created"), _("state"), _("trials"), _("framework"), _("cases"), _("throughput")),
        *(_("interval"), ""),
        *((_("cost/M"), _("cost to target"), "kWh/M") if price else ()),
    ]
    priced = [_("cost/M and kWh/M: of a million samples, at {price}", price=price)] if price else []
    rows = [[*_state(run), *_figures(results, price)] for run, results in listed]
    return Table(header, rows, frozenset({5, 6, 9, 10, 11}), notes=priced)


def _state(run: Mapping[str, Any]) -> tuple[str, ...]:
    made = time.strftime("%Y-%m-%d %H:%M", time.localtime(run["created"]))
    ok = f"{run['ok']}/{run['least']}"
    trials = _("{ok}, {failed} failed", ok=ok, failed=run["failed"]) if run["failed"] else ok
    return run["name"], made, run["status"], trials


def _figures(results: Sequence[Result], price: Price | None) -> list[Text]:
    """Frameworks, cases, the headline with its interval and unit, and with a price its costs."""
    figure = headline_record(results, price)
    if figure is None:
        return ["", str(len(results)), "", "", "", *([""] * 3 if price else ())]
    bounds = number.bounds(figure["low"], figure["high"]) if figure["low"] is not None else ""
    costs = [significant(figure[name], 3) for name in COSTS] if price else []
    shown = (throughput(figure["median"]), bounds, figure["unit"])
    return [", ".join(_frameworks(results)), str(len(results)), *shown, *costs]


def _frameworks(results: Sequence[Result]) -> list[str]:
    """Return each framework with its version, in the order of the results."""
    names = (" ".join(filter(None, (label.framework(r.key), r.key.framework_version))) for r in results)
    return list(dict.fromkeys(names))


TIME = re.compile(r"\b(created|started)\b")
BYTES = re.compile(r"_bytes\b")
SECONDS = re.compile(r"(\b|_)seconds\b|\btime2train\b")
EARLIEST_TIME = 1e9  # what is less is a difference of times
FEWEST_SEPARATED = 100_000  # a year or a batch keeps its four digits together
LEAST_PLAIN = 1e-4


def readable(name: str, value: Any) -> str:
    """Return one value of the column `name` of a trial for a terminal; JSON has it as it is."""
    if value is None:
        return ""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not isfinite(value):
        return str(value)
    if TIME.search(name) and value >= EARLIEST_TIME:
        return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(value))
    if BYTES.search(name) and value >= GIB / 1024:
        return f"{significant(value / GIB, 3)} GiB"
    if SECONDS.search(name):
        return duration(value)
    if isinstance(value, int) or value.is_integer():
        return f"{value:,.0f}" if abs(value) >= FEWEST_SEPARATED else f"{value:.0f}"
    return throughput(value) if abs(value) >= LEAST_PLAIN else f"{value:.4g}"
