"""The fused step trains what every framework trains: by the same check, on one rank and on two."""

from __future__ import annotations

import sys

import pytest

from trainmark.runner.conform import conforming
from trainmark.workloads import registry

pytest.importorskip("torch", reason="PyTorch is not installed; trainmark frameworks install pytorch")


RESNET50 = registry.find("resnet50")
NHWC = conforming.variant_of(RESNET50, "NHWC")


@pytest.mark.parametrize("ranks", [1, 2])
def test_its_losses_gradients_and_weights_are_those_of_the_reference(ranks):
    command = (*conforming.program(RESNET50, "pytorch", sys.executable, NHWC, "cpu"), "--engine", "fused")
    check = conforming.checked(RESNET50, command, ranks, NHWC, stop_asked=lambda: False)
    assert check.failed is None
    assert not check.differs
