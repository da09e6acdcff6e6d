"""The nodes of a run as a section of its environment; the rest then describes where it was started."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def nodes_of(record: Mapping[str, Any]) -> dict[str, Any]:
    """From what each node said of itself before the first trial; nothing for one machine."""
    nodes = [node for node in record.get("nodes", ()) if node.get("facts")]
    return {"cluster": [_row(node["node"], node["facts"]) for node in nodes]} if nodes else {}


def _row(name: str, facts: Mapping[str, Any]) -> dict[str, Any]:
    host, gpus = facts["host"], facts["gpus"]
    return {
        "node": name,
        "gpus": len(gpus),
        "gpu": ", ".join(sorted({gpu["name"] for gpu in gpus})) or None,
        "driver": ", ".join(sorted({str(gpu.get("driver")) for gpu in gpus})) or None,
        "processor": host.get("processor"),
        "cpus": host["cpus"],
        "memory_bytes": host["memory_total"],
        "kernel": host["kernel"],
        "python": host["python"],
        "interface": facts["interface"],
        "address": facts["address"],
    }
