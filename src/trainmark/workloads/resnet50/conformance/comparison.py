"""What every rank showed of itself, compared with the reference."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from trainmark.workloads.declaration import Comparison
from trainmark.workloads.resnet50.conformance import reference
from trainmark.workloads.resnet50.conformance.differences import differences, statistics_convention


def compare(shown: Sequence[Mapping[str, Any]]) -> Comparison:
    """Compare what every rank wrote down with the reference."""
    expected = reference.expected(len(shown))
    named = [
        f"rank {rank}: {difference}" if len(shown) > 1 else str(difference)
        for rank, (seen, right) in enumerate(zip(shown, expected, strict=True))
        for difference in differences(seen, right)
    ]
    errors = [
        abs(loss / right_loss - 1)
        for seen, right in zip(shown, expected, strict=True)
        for loss, right_loss in zip(seen["losses"], right["losses"], strict=True)
    ]
    if named:
        return Comparison(tuple(named), max(errors))
    variance = statistics_convention(shown[0], expected[0])
    remark = f"batch norm keeps the {variance} variance"
    return Comparison((), max(errors), remark, (("running_variance", variance),))
