"""OneFlow's two rules: DLPerf's extractor, and the report of August 2020."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from statistics import fmean, harmonic_mean, median
from typing import Any, NamedTuple

from trainmark.audit.protocols.protocol import (
    CASE,
    BatchWindow,
    ProtocolDoubt,
    Reading,
    RuleStopsError,
    files_in,
    lines_of,
    number_in_name,
)

HEADER = re.compile(r"^(num_nodes|gpu_num_per_node|batch_size_per_device) = ([1-9]\d{0,8})\b", re.M)
STEP = re.compile(
    r"^(?:train: epoch \d+, iter (?P<iter>\d{1,12})|step: (?P<step>\d{1,12})),(?P<rest>.*)$", re.M
)
RATE = re.compile(r"(?:samples/s|throughput): (\d+(?:\.\d+)?)")
# The trailing number of a line is its unix time where the trainer prints one.
UNIX_TIME = 1_000_000_000


class RunShape(NamedTuple):
    """What the rules key by; None is what neither the log nor its place tells."""

    nodes: int | None
    devices: int | None
    batch: int | None

    @property
    def ranks(self) -> int | None:
        return self.nodes * self.devices if self.nodes and self.devices else None


def run_shape(path: Path, text: str) -> RunShape:
    """From the header that the trainer prints, else from `1n8g/…_b128_….log`."""
    header = {name: int(value) for name, value in HEADER.findall(text)}
    case = CASE.fullmatch(path.parent.name)
    return RunShape(
        header.get("num_nodes") or (int(case["nodes"]) if case else None),
        header.get("gpu_num_per_node") or (int(case["devices"]) if case else None),
        header.get("batch_size_per_device") or number_in_name(path, "batch"),
    )


def last_tokens(text: str) -> dict[int, float]:
    """The last token of each step's line; a later line of the same step takes its place."""
    return {
        int(match["iter"] or match["step"]): float(match["rest"].split(" ")[-1].strip())
        for match in STEP.finditer(text)
        if re.fullmatch(r"\d+(?:\.\d+)?", match["rest"].split(" ")[-1].strip())
    }


def rates(text: str) -> list[float]:
    return [float(rate[1]) for match in STEP.finditer(text) if (rate := RATE.search(match["rest"]))]


def read_dlperf(folder: Path, window: BatchWindow) -> Reading:
    """`batch × steps ÷ (last token at the end − last token at the start)`, whatever the token is."""
    speeds: dict[RunShape, list[float]] = {}
    ours: dict[RunShape, list[float]] = {}
    doubts: list[ProtocolDoubt] = []
    for path in files_in(folder):
        text = "".join(lines_of(path))
        shape, tokens = run_shape(path, text), last_tokens(text)
        if shape.ranks is None or shape.batch is None:
            raise RuleStopsError(f"{path}: no num_nodes, gpu_num_per_node and batch_size_per_device in it.")
        for step in (window.warmup, window.train):
            if step not in tokens:
                raise RuleStopsError(f"{path}: no line for step {step}, which the rule needs.")
        samples = shape.batch * shape.ranks * (window.train - window.warmup)
        duration = tokens[window.train] - tokens[window.warmup]
        if duration == 0:
            raise RuleStopsError(f"{path}: the same last number at steps {window.warmup} and {window.train}.")
        speed = samples / duration
        speeds.setdefault(shape, []).append(speed)
        ours.setdefault(shape, []).append(speed)
        if tokens[window.train] < UNIX_TIME:
            right = harmonic_mean(rates(text)[1:]) if rates(text)[1:] else None
            ours[shape][-1:] = [right] if right else []
            beside = f"; ours is {right:.2f}" if right else ""
            message = (
                f"{path.name}: the lines end in a throughput, not in a unix time, and the rule subtracts "
                f"throughputs ({speed:.2f}){beside}."
            )
            doubts.append(ProtocolDoubt("rate-taken-for-time", message))
    rows = list(_rows(speeds))
    if any(row["speedup"] == 0.0 for row in rows):
        message = "no 1n1g log of the same batch: the speed-up is given as 0.0."
        doubts.append(ProtocolDoubt("no-baseline", message))
    return Reading({"rows": rows}, doubts, {"rows": list(_rows(ours))})


def _rows(speeds: dict[RunShape, list[float]]) -> Iterator[dict[str, Any]]:
    """Their table: the largest batch first; a speed-up of 0.0 without a 1n1g of the same batch."""
    single = {shape.batch: median(values) for shape, values in speeds.items() if shape.ranks == 1 and values}
    for shape in sorted(
        speeds, key=lambda shape: (-(shape.batch or 0), shape.nodes or 0, shape.devices or 0)
    ):
        if not speeds[shape]:
            continue
        speed, baseline = median(speeds[shape]), single.get(shape.batch)
        yield {
            "num_nodes": shape.nodes,
            "gpu_num_per_node": shape.devices,
            "batch_size_per_device": shape.batch,
            "throughput": round(speed, 2),
            "speedup": round(speed / baseline, 2) if baseline else 0.0,
        }


def read_report(folder: Path, window: BatchWindow) -> Reading:
    """Drop the first `samples/s`, average the others; the speed-up against one device of the same batch."""
    logs: list[tuple[Path, RunShape, list[float]]] = []
    for path in files_in(folder):
        text = "".join(lines_of(path))
        logs.append((path, run_shape(path, text), rates(text)))
    message = "fewer than two `samples/s` lines, so nothing to average."
    doubts = [
        ProtocolDoubt("window-empty", f"{path.name}: {message}")
        for path, _, values in logs
        if len(values) < 2
    ]
    table = _report_rows(logs, fmean)
    right = _report_rows(logs, harmonic_mean)
    for theirs, ours in zip(table, right, strict=True):
        if ours["Throughput"] and abs(theirs["Throughput"] / ours["Throughput"] - 1) > 0.001:
            mean = f"{theirs['gpu num']} devices: {theirs['Throughput']} is a mean of rates"
            doubts.append(
                ProtocolDoubt("mean-of-rates", f"{mean}; samples over time give {ours['Throughput']}.")
            )
    return Reading({"rows": table}, doubts, {"rows": right})


def _report_rows(logs: list[tuple[Path, RunShape, list[float]]], mean: Any) -> list[dict[str, Any]]:
    figures = [(shape, mean(values[1:])) for _, shape, values in logs if len(values) > 1]
    single = {shape.batch: figure for shape, figure in figures if shape.ranks == 1}
    return [
        {
            "node num": shape.nodes,
            "gpus/nodes": shape.devices,
            "gpu num": shape.ranks,
            "bsz/gpu": shape.batch,
            "Throughput": round(figure, 3),
            "Speedup": round(figure / single[shape.batch], 2) if single.get(shape.batch) else None,
        }
        for shape, figure in sorted(figures, key=lambda row: (row[0].batch or 0, row[0].ranks or 0))
    ]
