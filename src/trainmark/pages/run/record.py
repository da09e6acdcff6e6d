"""A run as JSON for scripts: a stable contract, so names are added but never changed."""

from __future__ import annotations

import json
from dataclasses import asdict
from math import isfinite
from typing import Any

from trainmark.base.typed_json import encode
from trainmark.logs.ledger import Standing
from trainmark.measure.ab import BaselineContrast
from trainmark.measure.comparison import ScalingSeries, framework_comparisons, scaling
from trainmark.measure.cost import Cost, cost_of
from trainmark.measure.doubts import Doubt
from trainmark.measure.figure import FinishResult, Interval, Ratio, Result
from trainmark.measure.key import Key
from trainmark.measure.result import ReliabilityVerdict, result_verdict, run_verdict
from trainmark.measure.utilisation import share as light_share
from trainmark.pages import label
from trainmark.pages.run.answer import verdict_sentence
from trainmark.pages.run.frameworks import FrameworkTable, published_figure
from trainmark.pages.run.results import contrast_sentence, grave_doubts, results_by_case
from trainmark.pages.standing import standing_line
from trainmark.store.report import NOT_CHECKED, Conformance, RunReport
from trainmark.workloads import registry

PLACE = frozenset({"nodes", "devices_per_node"})


def run_json(report: RunReport) -> str:
    """Return the report; a number that is not finite is null, and all text is ASCII with escapes."""
    return json.dumps(_finite(run_record(report)), indent=2, allow_nan=False) + "\n"


def run_record(report: RunReport) -> dict[str, Any]:
    return {
        "run": {
            "name": report.name,
            "title": report.name,
            "about": report.about,
            "created": report.created,
            "version": report.version,
            "command": report.command,
            "suite": report.suite,
        },
        "verdict": _verdict(run_verdict(report.results)),
        "results": result_records(report),
        "contrasts": [_contrast(report, each) for each in report.contrasts],
        "scaling": [_series(series) for series in scaling(report.results)],
        "trials": [asdict(trial) for trial in report.trials],
        "skipped": [{"case": case, "reason": reason} for case, reason in report.skipped],
        "damaged": [asdict(damage) for damage in report.damaged],
        "environment": report.environment,
    }


def result_records(report: RunReport) -> list[dict[str, Any]]:
    """The results under the names of the contract; the CSV flattens the same trees."""
    share = {
        entrant.result.key: entrant.share
        for compared in framework_comparisons(report.results)
        for entrant in compared.entrants
    }
    return [
        {
            **_result(result),
            **cost_record(cost_of(result, report.price)),
            "light_share": light_share(result, report.reference_rates),
            "share_of_best": _ratio(share.get(result.key)),
            "published": standing_line(result.key, report.published.get(result.key)) or None,
            "published_of_framework": _standing(report.standings.get(result.key)),
            "conformance": _conformance(report.conformance.get(result.key, NOT_CHECKED)),
        }
        for result in report.results
    ]


def framework_record(frameworks: FrameworkTable) -> dict[str, Any]:
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
        **key_record(result.key),
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


def key_record(key: Key) -> dict[str, Any]:
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
        **{name: value for name, value in key_record(series.key).items() if name not in PLACE},
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


def _contrast(report: RunReport, contrast: BaselineContrast) -> dict[str, Any]:
    results = results_by_case(report)
    doubts = grave_doubts([results.get(contrast.baseline), results.get(contrast.case)])
    return {
        "baseline": contrast.baseline,
        "case": contrast.case,
        "ratio": contrast.judgement.ratio if contrast.judgement else None,
        "low": contrast.bounds[0] if contrast.bounds else None,
        "high": contrast.bounds[1] if contrast.bounds else None,
        "verdict": contrast.verdict.value,
        "pairs": len(contrast.pairs),
        "matters": contrast.matters,
        "doubts": [code.value for code in doubts],
        "sentence": contrast_sentence(report, contrast),
    }


def cost_record(cost: Cost) -> dict[str, float | None]:
    """The costs under the names that they have in every JSON."""
    names = {
        "per_million": "cost_per_million",
        "to_target": "cost_to_target",
        "kwh_per_million": "kwh_per_million",
    }
    return {names[name]: value for name, value in asdict(cost).items()}
