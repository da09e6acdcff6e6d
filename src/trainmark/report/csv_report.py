"""The results as a spreadsheet: one row each, the JSON contract's names joined by an underscore."""

from __future__ import annotations

import csv
import io
from dataclasses import fields
from math import isfinite
from typing import Any

from trainmark.measure.key import Key
from trainmark.report.document import Document
from trainmark.report.json_report import result_trees
from trainmark.report.visible import one_line

KEY = tuple(field.name for field in fields(Key))
NESTED = {
    "throughput": ("median", "low", "high", "confidence", "n", "unit"),
    "speedup": ("value", "low", "high", "confidence"),
    "efficiency": ("value", "low", "high", "confidence"),
    "step_seconds": ("mean", "p50", "p90", "p99", "longest"),
    "time_shares": ("compute", "communication", "data", "other"),
    "step_parts": ("compute", "data", "other", "straggling", "communication"),
    "mfu": ("value", "peak_flops", "source"),
    "finish": (
        *("target", "reached", "decided", "time2train", "low", "high", "confidence", "airank_seconds"),
        *("epochs_to_target", "best_top1", "best_top5", "best_epoch", "lowest_top1"),
        *("train_rate", "whole_rate", "airank_rate", "evaluation_seconds", "checkpoint_seconds", "resumed"),
    ),
    "of_synthetic": ("value", "low", "high", "confidence"),
    "share_of_best": ("value", "low", "high", "confidence"),
    "published_of_framework": ("throughput", "per_device", "topology", "ratio", "source"),
    "conformance": ("conformant", "differs", "checked"),
}
PLAIN = (
    "memory_bytes",
    "first_step_seconds",
    "warmup_steps",
    "settling_steps",
    "data_wait_share",
    "samples_per_joule",
    "memory_share",
    "peak_bandwidth",
    "light_share",
)
COLUMNS = [
    *KEY,
    *(f"{name}_{part}" for name, parts in NESTED.items() for part in parts),
    *(f"finish_speedup_{part}" for part in NESTED["speedup"]),
    *PLAIN,
    "trials",
    "doubts",
]


def render(document: Document) -> str:
    out = io.StringIO()
    writer = csv.DictWriter(out, COLUMNS, lineterminator="\n")
    writer.writeheader()
    for tree in result_trees(document):
        writer.writerow({name: cell(value) for name, value in _flat(tree).items()})
    return out.getvalue()


def cell(value: Any) -> Any:
    """Empty for what is missing; text that a spreadsheet would take for a formula is quoted."""
    if value is None or (isinstance(value, float) and not isfinite(value)):
        return ""
    if not isinstance(value, str):
        return value
    text = one_line(value)
    return f"'{text}" if text.startswith(("=", "+", "-", "@")) else text


def _flat(tree: dict[str, Any]) -> dict[str, Any]:
    row = {name: tree[name] for name in (*KEY, *PLAIN)}
    for name, parts in NESTED.items():
        for part in parts:
            row[f"{name}_{part}"] = tree[name][part] if tree[name] is not None else None
    by_time = (tree["finish"] or {}).get("speedup")
    for part in NESTED["speedup"]:
        row[f"finish_speedup_{part}"] = by_time[part] if by_time else None
    row["conformance_differs"] = "; ".join(tree["conformance"]["differs"])
    row["trials"] = " ".join(repr(figure) for figure in tree["trials"])
    row["doubts"] = " ".join(doubt["code"] for doubt in tree["doubts"])
    return row
