"""The rules of others by name: their figure to the digit, and where it is wrong.

protocols.apply("dlperf-mindspore", folder, 100, 200)   # their dictionary
protocols.doubts("dlperf-mindspore", folder, 100, 200)  # where the rule goes wrong on these logs
protocols.ours("dlperf-mindspore", folder, 100, 200)    # samples over wall time from the same lines
"""

from __future__ import annotations

import json
import pprint
from collections.abc import Callable
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import yaml

from trainmark.audit.protocols import dlperf
from trainmark.audit.protocols.protocol import BatchWindow, Protocol, ProtocolDoubt, Reading, RuleStopsError
from trainmark.base.errors import UserError

__all__ = [
    "Protocol",
    "ProtocolDoubt",
    "Reading",
    "RuleStopsError",
    "apply",
    "as_json",
    "as_printed",
    "doubts",
    "get",
    "names",
    "ours",
    "read",
    "write",
]


def _protocol(entry: dict[str, Any]) -> Protocol:
    read: Callable[[Path, BatchWindow], Reading]
    if "estimate" in entry:
        read = partial(dlperf.read, dlperf.make_rule(entry))
    else:
        module, _, function = entry["read"].partition(".")
        read = getattr(import_module(f"{__name__}.{module}"), function)
    return Protocol(
        name=entry["name"],
        title=entry["title"],
        source=entry["source"],
        read=read,
        window=BatchWindow(*entry["window"]) if "window" in entry else None,
        smallest_warmup=entry.get("smallest_warmup", 0),
        multiple=entry.get("multiple", 1),
    )


_ENTRIES = yaml.safe_load(Path(__file__).with_name("protocols.yaml").read_text(encoding="utf-8"))
_BY_NAME: dict[str, Protocol] = {entry["name"]: _protocol(entry) for entry in _ENTRIES}


def names() -> tuple[str, ...]:
    return tuple(_BY_NAME)


def get(name: str) -> Protocol:
    if name not in _BY_NAME:
        raise UserError(f"no protocol is named {name!r}; there are {', '.join(_BY_NAME)}.")
    return _BY_NAME[name]


def read(name: str, folder: Path, warmup: int | None = None, train: int | None = None) -> Reading:
    """All three at once: their table, the doubts about it, ours."""
    protocol = get(name)
    window = protocol.chosen_window(warmup, train)
    if not folder.exists():
        raise UserError(f"{folder}: no such file or folder.")
    return protocol.read(folder, window)


def apply(name: str, folder: Path, warmup: int | None = None, train: int | None = None) -> dict[str, Any]:
    """Their dictionary, keys in the order in which theirs prints them."""
    return read(name, folder, warmup, train).table


def doubts(
    name: str, folder: Path, warmup: int | None = None, train: int | None = None
) -> list[ProtocolDoubt]:
    """Where the rule is known to go wrong on these logs; empty where it does not."""
    return read(name, folder, warmup, train).doubts


def ours(name: str, folder: Path, warmup: int | None = None, train: int | None = None) -> dict[str, Any]:
    """Samples over wall time where the logs allow it, keyed by batch and precision too."""
    return read(name, folder, warmup, train).ours


def as_printed(table: dict[str, Any]) -> str:
    """As their scripts print it."""
    return pprint.pformat(table, indent=1)


def as_json(table: dict[str, Any]) -> str:
    """As their scripts write it: one line, NaN where they have NaN."""
    return json.dumps(table)


def write(table: dict[str, Any], path: Path) -> None:
    """Their `…_result.json`; only on request, reading logs writes nothing."""
    path.write_text(as_json(table), encoding="utf-8")
