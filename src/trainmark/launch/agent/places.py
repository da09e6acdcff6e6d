"""Paths of home, and what stands for them on this node."""

from __future__ import annotations

from typing import Any


def relocated(value: Any, places: dict[str, str]) -> Any:
    """The same with every path of home turned into the one that stands for it here, longest first."""
    if isinstance(value, str):
        for ours, theirs in sorted(places.items(), key=lambda pair: -len(pair[0])):
            value = value.replace(ours, theirs)
        return value
    if isinstance(value, list):
        return [relocated(each, places) for each in value]
    if isinstance(value, dict):
        return {name: relocated(each, places) for name, each in value.items()}
    return value
