"""The fused step trains what every framework trains: by the same check, on one rank and on two."""

from __future__ import annotations

import sys
from functools import partial

import pytest

import small_resnet
from trainmark.runner import conformance
from trainmark.workloads import registry

pytest.importorskip("torch", reason="PyTorch is not installed; trainmark frameworks install pytorch")


RESNET50 = registry.find("resnet50")
NHWC = conformance.variant_of(RESNET50, "NHWC")


def check_fused(ranks: int):
    command = (*conformance.program(RESNET50, "pytorch", sys.executable, NHWC, "cpu"), "--engine", "fused")
    return conformance.checked(RESNET50, command, ranks, NHWC, stop_asked=lambda: False)


def test_losses_gradients_and_weights_of_the_whole_network_are_those_of_the_reference():
    check = check_fused(ranks=1)
    assert check.failed is None
    assert not check.differs


def test_two_ranks_of_three_blocks_train_as_the_reference_does(monkeypatch):
    """What two ranks add, the exchange of gradients, is the same for every block."""
    small_code = partial(small_resnet.copy_code, small_resnet.THREE_BLOCKS)
    monkeypatch.setattr(conformance, "keep_code", small_code)
    small_resnet.build_here(small_resnet.THREE_BLOCKS, monkeypatch)
    check = check_fused(ranks=2)
    assert check.failed is None
    assert not check.differs
