"""Where a rule of someone else's goes wrong on the logs at hand."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class ProtocolDoubt:
    """`code` is stable; `message` names the log and, where its lines allow, our figure."""

    code: str
    message: str
