"""What every rank showed of itself, compared with the reference."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from trainmark.workloads.common.conformance.differences import loss_errors, sentences
from trainmark.workloads.declaration import Comparison
from trainmark.workloads.resnet50.conformance import reference
from trainmark.workloads.resnet50.conformance.differences import differences, statistics_convention


def compare(shown: Sequence[Mapping[str, Any]]) -> Comparison:
    """Compare what every rank wrote down with the reference."""
    expected = reference.expected(len(shown))
    differs = sentences([differences(*pair) for pair in zip(shown, expected, strict=True)])
    largest = max(loss_errors(shown, expected))
    if differs:
        return Comparison(differs, largest)
    variance = statistics_convention(shown[0], expected[0])
    remark = f"batch norm keeps the {variance} variance"
    return Comparison((), largest, remark, (("running_variance", variance),))
