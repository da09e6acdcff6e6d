"""Fixes that several checks give."""

from __future__ import annotations

from trainmark.doctor.wanted import Interpreter


def reinstalled(node: str, asked: Interpreter, how: str) -> str:
    """How an environment becomes what the others have."""
    if asked.install:
        return f"on {node}: `{asked.install} --force`"
    return f"on {node}: make the environment of {asked.path} anew {how}"
