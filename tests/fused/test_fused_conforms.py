"""The fused step trains what every framework trains: by the same check, on one rank and on two."""

from __future__ import annotations

import sys

import pytest

from trainmark.runner import conforming

pytest.importorskip("torch", reason="PyTorch is not installed; trainmark frameworks install pytorch")


@pytest.mark.parametrize("ranks", [1, 2])
def test_its_losses_gradients_and_weights_are_those_of_the_reference(ranks):
    command = (*conforming.program("pytorch", sys.executable, "NHWC", "cpu"), "--engine", "fused")
    check = conforming.checked(command, ranks, "NHWC", stop_asked=lambda: False)
    assert check.failed is None
    assert not check.differs
