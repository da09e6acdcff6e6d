"""What version 0.1.0 wrote, under the names of this version: events, and the finish of a stored figure."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

OLD_NAMES = Path(__file__).with_name("version_0_1.json")


def upgraded_facts(event: str, facts: dict[str, Any]) -> dict[str, Any]:
    """Rename the facts of a `run_start` or `eval` event; a training by epochs gets its metrics."""
    if event == "run_start" and "epochs" in facts and "metrics" not in facts:
        return {**_renamed(event, facts), "metrics": _old()["metrics"]}
    return _renamed(event, facts) if event == "eval" else facts


def upgraded_finish(finish: dict[str, Any]) -> dict[str, Any]:
    """Rename what the finish of a stored figure holds, its epochs and its evaluations."""
    if "metrics" in finish:
        return finish
    metrics = [{"name": name, **properties} for name, properties in _old()["metrics"].items()]
    renamed = {**_renamed("finish", finish), "metrics": metrics}
    for part in ("epochs", "evaluations"):
        if isinstance(items := renamed.get(part), list):
            renamed[part] = [_renamed("epoch", item) if isinstance(item, dict) else item for item in items]
    return renamed


def _renamed(event: str, plain: dict[str, Any]) -> dict[str, Any]:
    names = _old()[event]
    return {names.get(name, name): value for name, value in plain.items()}


@cache
def _old() -> dict[str, dict[str, Any]]:
    read: dict[str, dict[str, Any]] = json.loads(OLD_NAMES.read_bytes())
    return read
