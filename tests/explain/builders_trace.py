"""Traces as Kineto writes them, event by event."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

THREAD = 21


def span(
    category: str, name: str, start: float, duration: float, tid: int = THREAD, **arguments: Any
) -> dict:
    return {
        "ph": "X",
        "cat": category,
        "name": name,
        "pid": 20,
        "tid": tid,
        "ts": start,
        "dur": duration,
        "args": arguments,
    }


def operator(name: str, start: float, duration: float, **arguments: Any) -> dict:
    return span("cpu_op", name, start, duration, **arguments)


def annotation(name: str, start: float, duration: float) -> dict:
    return span("user_annotation", name, start, duration)


def call(start: float, correlation: int, name: str = "cudaLaunchKernel", tid: int = THREAD) -> dict:
    return span("cuda_runtime", name, start, 2, tid, correlation=correlation)


def kernel(
    name: str, start: float, duration: float, stream: int = 7, device: int = 0, **arguments: Any
) -> dict:
    return span("kernel", name, start, duration, stream, device=device, stream=stream, **arguments)


def write_trace(path: Path, events: list[Any], **metadata: Any) -> Path:
    path.write_text(json.dumps({"schemaVersion": 1, **metadata, "traceEvents": events}), encoding="utf-8")
    return path
