"""The machine-readable report: a stable contract, so names are added but never changed."""

from __future__ import annotations

import json
from dataclasses import asdict
from math import isfinite
from typing import Any

from trainmark.base.typed_json import encode
from trainmark.logs.ledger import Standing
from trainmark.measure.cost import cost_of
from trainmark.measure.doubts import Doubt
from trainmark.measure.figure import FinishResult, Interval, Ratio, Result
from trainmark.measure.key import Key
from trainmark.measure.reference_rate import share as light_share
from trainmark.measure.reliability import ReliabilityVerdict, result_verdict, run_verdict
from trainmark.measure.scaling import ScalingSeries, scaling
from trainmark.pages import label
from trainmark.report.answer.verdict import verdict_sentence
from trainmark.report.conformance import NOT_CHECKED, Conformance
from trainmark.report.document import Document
from trainmark.report.format.published_words import published_lines
from trainmark.report.sections.contrast import contrast_trees
from trainmark.report.sections.frameworks import FrameworkTable, published_figure, shares
from trainmark.report.sections.headline import cost_record
from trainmark.workloads import registry

PLACE = frozenset({"nodes", "devices_per_node"})


def render(document: Document) -> str:
    """The whole document; a number that is not finite is null, and all text is ASCII with escapes."""
    return json.dumps(_finite(tree(document)), indent=2, allow_nan=False) + "\n"


def tree(document: Document) -> dict[str, Any]:
    return {
        "run": {
            "name": document.name,
            "title": document.title,
            "about": document.about,
            "created": document.created,
            "version": document.version,
            "command": document.command,
            "suite": document.suite,
        },
        "verdict": _verdict(run_verdict(document.results)),
        "results": result_trees(document),
        "contrasts": contrast_trees(document),
        "scaling": [_series(series) for series in scaling(document.results)],
        "trials": [asdict(trial) for trial in document.trials],
        "skipped": [{"case": case, "reason": reason} for case, reason in document.skipped],
        "damaged": [asdict(damage) for damage in document.damaged],
        "environment": document.environment,
    }


def result_trees(document: Document) -> list[dict[str, Any]]:
    """The results under the names of the contract; the CSV flattens the same trees."""
    share, published = shares(document.results), published_lines(document.published, "en")
    return [
        {
            **_result(result),
            **cost_record(cost_of(result, document.price)),
            "light_share": light_share(result, document.light),
            "share_of_best": _ratio(share.get(result.key)),
            "published": published.get(result.key),
            "published_of_framework": _standing(document.standings.get(result.key)),
            "conformance": _conformance(document.conformance.get(result.key, NOT_CHECKED)),
        }
        for result in document.results
    ]


def table_tree(frameworks: FrameworkTable) -> dict[str, Any]:
    """A comparison of frameworks, its rows under the names that they have as results."""
    rows = [
        {
            **_result(row.result),
            "share_of_best": _ratio(row.share),
            "published_of_framework": _standing(row.published),
            "conformance": _conformance(row.conformance),
        }
        for row in frameworks.rows
    ]
    tree: dict[str, Any] = _finite({"name": frameworks.name, "unit": frameworks.unit, "rows": rows})
    return tree


def _result(result: Result) -> dict[str, Any]:
    return {
        **key_tree(result.key),
        "throughput": {
            "median": result.throughput,
            **_bounds(result.interval),
            "n": result.n,
            "unit": label.rate_unit(result.unit),
        },
        "speedup": _ratio(result.speedup),
        "efficiency": _ratio(result.efficiency),
        "memory_bytes": result.memory_bytes,
        "host_memory_bytes": result.host_memory_bytes,
        "step_source": result.step_source,
        "sample_source": result.sample_source,
        "pauses": [asdict(each) for each in result.pauses],
        "step_seconds": asdict(result.step_times),
        "first_step_seconds": result.first_step_seconds,
        "warmup_steps": result.warmup_steps,
        "settling_steps": result.settling_steps,
        "data_wait_share": result.data_wait_share,
        "samples_per_joule": result.samples_per_joule,
        "joules_per_sample": result.joules_per_sample,
        "mfu": asdict(result.utilisation) if result.utilisation else None,
        "hfu": asdict(result.hardware_utilisation) if result.hardware_utilisation else None,
        "conventions": [
            {"name": convention.name, **asdict(convention.utilisation)} for convention in result.conventions
        ],
        "memory_share": result.memory_share,
        "peak_bandwidth": result.peak_bandwidth,
        "time_shares": asdict(result.breakdown.shares) if result.breakdown else None,
        "step_parts": asdict(result.breakdown.parts) if result.breakdown else None,
        "ranks": [asdict(rank) for rank in result.breakdown.ranks] if result.breakdown else None,
        "stragglers": [asdict(straggler) for straggler in result.stragglers],
        "finish": _finish(result.finish),
        "of_synthetic": _ratio(result.of_synthetic),
        "trials": list(result.trials),
        "doubts": [_doubt(doubt) for doubt in result.doubts],
        "verdict": _verdict(result_verdict(result)),
    }


def key_tree(key: Key) -> dict[str, Any]:
    """The names of a key; an axis that the workload does not have, as a user's own program, is null."""
    return {**key.values(), **{name: key.value(name) for name in registry.axes()}}


def _finish(finish: FinishResult | None) -> dict[str, Any] | None:
    if finish is None:
        return None
    none = {f"best_{metric.name}": None for metric in finish.metrics}
    plain = {**none, **encode(finish), **_bounds(finish.interval), "speedup": _ratio(finish.time_speedup)}
    return {name: value for name, value in plain.items() if name not in ("interval", "time_speedup")}


def _series(series: ScalingSeries) -> dict[str, Any]:
    return {
        "kind": series.kind.value,
        **{name: value for name, value in key_tree(series.key).items() if name not in PLACE},
        "global_batch": series.global_batch,
        "baseline": series.baseline.key.topology,
        "points": [
            {
                "topology": point.result.key.topology,
                "devices": point.result.key.devices,
                "batch_per_device": point.result.key.batch_per_device,
                "throughput": point.result.throughput,
                "speedup": _ratio(point.speedup),
                "efficiency": _ratio(point.efficiency),
                "loss": asdict(point.loss) if point.loss else None,
            }
            for point in series.points
        ],
    }


def _bounds(interval: Interval | None) -> dict[str, float | None]:
    if interval is None:
        return {"low": None, "high": None, "confidence": None}
    return {"low": interval.low, "high": interval.high, "confidence": interval.confidence}


def _ratio(ratio: Ratio | None) -> dict[str, float | None] | None:
    return None if ratio is None else {"value": ratio.value, **_bounds(ratio.interval)}


def _standing(standing: Standing | None) -> dict[str, Any] | None:
    if standing is None:
        return None
    return {
        "throughput": published_figure(standing),
        "per_device": standing.per_device,
        "topology": standing.best.row.topology,
        "ratio": standing.ratio,
        "source": standing.best.source,
    }


def _conformance(conformance: Conformance) -> dict[str, Any]:
    return {
        "conformant": conformance.conformant,
        "differs": list(conformance.differs),
        "checked": conformance.checked,
    }


def _doubt(doubt: Doubt) -> dict[str, Any]:
    return {
        "code": doubt.code.value,
        "severity": doubt.severity.value,
        "message": doubt.message,
        "trials": doubt.trials,
        "of": doubt.of,
    }


def _verdict(verdict: ReliabilityVerdict) -> dict[str, Any]:
    return {
        "reliability": verdict.reliability.value,
        "sentence": verdict_sentence(verdict),
        "within": verdict.within,
        "concerned": verdict.concerned,
        "figures": verdict.figures,
        "doubts": [doubt.code.value for doubt in verdict.reasons],
    }


def _finite(value: Any) -> Any:
    if isinstance(value, float):
        return value if isfinite(value) else None
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(item) for item in value]
    return value
