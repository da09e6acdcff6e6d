"""The results as a spreadsheet: one row each, the JSON contract's names joined by an underscore."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable
from math import isfinite
from typing import Any

from trainmark.base.text import one_line
from trainmark.measure.key import Key
from trainmark.pages.run.record import key_record, result_records
from trainmark.store.report import RunReport
from trainmark.workloads import registry

NESTED = {
    "throughput": ("median", "low", "high", "confidence", "n", "unit"),
    "speedup": ("value", "low", "high", "confidence"),
    "efficiency": ("value", "low", "high", "confidence"),
    "step_seconds": ("mean", "p50", "p90", "p99", "longest"),
    "time_shares": ("compute", "communication", "data", "other"),
    "step_parts": ("compute", "data", "other", "straggling", "communication"),
    "mfu": ("value", "peak_flops", "source", "flops_per_sample"),
    "hfu": ("value", "flops_per_sample"),
    "finish": (
        *("target", "reached", "decided", "time2train", "low", "high", "confidence", "airank_seconds"),
        *("epochs_to_target", "best_epoch"),
        *("train_rate", "whole_rate", "airank_rate", "evaluation_seconds", "checkpoint_seconds", "resumed"),
    ),
    "of_synthetic": ("value", "low", "high", "confidence"),
    "share_of_best": ("value", "low", "high", "confidence"),
    "published_of_framework": ("throughput", "per_device", "topology", "ratio", "source"),
    "conformance": ("conformant", "differs", "checked"),
}
PLAIN = (
    "memory_bytes",
    "host_memory_bytes",
    "first_step_seconds",
    "warmup_steps",
    "settling_steps",
    "data_wait_share",
    "samples_per_joule",
    "joules_per_sample",
    "memory_share",
    "peak_bandwidth",
    "light_share",
    "cost_per_million",
    "cost_to_target",
    "kwh_per_million",
)
BOUNDS = ("best", "lowest", "highest")
COLUMNS = [
    *(f"{name}_{part}" for name, parts in NESTED.items() for part in parts),
    *(f"finish_speedup_{part}" for part in NESTED["speedup"]),
    *PLAIN,
    "conventions",
    "trials",
    "doubts",
]


def run_csv(report: RunReport) -> str:
    out = io.StringIO()
    key = _key_columns(result.key for result in report.results)
    scores = _score_columns(report)
    writer = csv.DictWriter(out, [*key, *COLUMNS, *scores], lineterminator="\n")
    writer.writeheader()
    for tree in result_records(report):
        row = {**_flat(tree, key), **{name: _score(tree, name) for name in scores}}
        writer.writerow({name: cell(value) for name, value in row.items()})
    return out.getvalue()


def _key_columns(keys: Iterable[Key]) -> dict[str, None]:
    """The names of these keys in their order: workloads differ in their axes."""
    return dict.fromkeys(name for key in (*keys, Key("")) for name in key_record(key))


def _score_columns(report: RunReport) -> list[str]:
    """`finish_best_NAME` and so on, of the metrics of every workload that is known here or in the results."""
    declared = (metric for family in registry.families().values() for metric in family.workload.metrics)
    reported = (metric for result in report.results if result.finish for metric in result.finish.metrics)
    names = dict.fromkeys(metric.name for metric in (*declared, *reported))
    return [f"finish_{bound}_{name}" for name in names for bound in BOUNDS]


def _score(tree: dict[str, Any], column: str) -> float | None:
    value: float | None = (tree["finish"] or {}).get(column.removeprefix("finish_"))
    return value


def cell(value: Any) -> Any:
    """Empty for what is missing; text that a spreadsheet would take for a formula is quoted."""
    if value is None or (isinstance(value, float) and not isfinite(value)):
        return ""
    if not isinstance(value, str):
        return value
    text = one_line(value)
    return f"'{text}" if text.startswith(("=", "+", "-", "@")) else text


def _flat(tree: dict[str, Any], key: Iterable[str]) -> dict[str, Any]:
    row = {name: tree.get(name) for name in (*key, *PLAIN)}
    for name, parts in NESTED.items():
        for part in parts:
            row[f"{name}_{part}"] = tree[name][part] if tree[name] is not None else None
    by_time = (tree["finish"] or {}).get("speedup")
    for part in NESTED["speedup"]:
        row[f"finish_speedup_{part}"] = by_time[part] if by_time else None
    row["conformance_differs"] = "; ".join(tree["conformance"]["differs"])
    row["conventions"] = " ".join(
        f"{convention['name']}={convention['value']!r}" for convention in tree["conventions"]
    )
    row["trials"] = " ".join(repr(figure) for figure in tree["trials"])
    row["doubts"] = " ".join(doubt["code"] for doubt in tree["doubts"])
    return row
