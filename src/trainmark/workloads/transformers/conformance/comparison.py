"""What every rank of a transformer's training showed of itself, compared with its family's reference."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from trainmark.workloads.common.conformance.differences import beyond_tolerance, loss_errors, sentences
from trainmark.workloads.declaration import Comparison
from trainmark.workloads.transformers.conformance import reference
from trainmark.workloads.transformers.conformance.differences import compared


def compare(family: str, optimizer: str, shown: Sequence[Mapping[str, Any]]) -> Comparison:
    """Compare what every rank wrote down with the reference."""
    expected = reference.expected(family, optimizer, len(shown))
    figures = [compared(family, *pair) for pair in zip(shown, expected, strict=True)]
    differs = sentences([beyond_tolerance(rank) for rank in figures])
    share = max(figure.share for rank in figures for figure in rank)
    largest = max(loss_errors(shown, expected))
    if differs:
        return Comparison(differs, largest)
    return Comparison((), largest, f"every figure within {share:.1%} of its tolerance")
