"""PyTorch's training drives the fused step as it drives its own: steps, evaluation, state to go on from."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed; trainmark frameworks install pytorch")

from trainmark.workloads.resnet50 import pytorch  # noqa: E402
from trainmark.workloads.resnet50.shared import program  # noqa: E402


def training(engine):
    words = "--layout NHWC --batch 4 --image-size 48 --seed 3 --engine"
    return pytorch.Training(program.parse_options([*words.split(), engine], "program"))


@pytest.fixture(scope="module")
def both():
    """Ours and PyTorch's after three steps from the same weights on one batch, and the losses of each."""
    ours, theirs = training("fused"), training("stock")
    weights = ours.tensors()
    for name, tensor in weights.items():
        if name.endswith("norm3.scale"):
            tensor.fill(0.2)  # a calm network: else a rounding decides which ReLUs are open
    for each in (ours, theirs):
        each.load(weights, ours.momenta())
    images, labels = next(ours.batches())
    losses = [[each.step(images, labels, 0.01).item() for _ in range(3)] for each in (ours, theirs)]
    return ours, theirs, losses, (images, labels)


def test_steps_from_the_same_weights_have_the_same_losses(both):
    _, _, (losses, expected), _ = both
    assert losses == pytest.approx(expected, rel=1e-3)
    assert losses[2] < losses[0]


def test_an_evaluation_takes_the_weights_and_running_statistics_of_the_steps(both):
    ours, theirs, _, batch = both
    theirs.load(ours.tensors(), ours.momenta())
    assert ours.evaluate(*batch)() == theirs.evaluate(*batch)()


def test_what_was_kept_goes_on_to_the_same_weights(both):
    ours, _, _, batch = both
    again = training("fused")
    again.load(ours.tensors(), ours.momenta(), ours.rest())
    ours.step(*batch, 0.01)
    again.step(*batch, 0.01)
    resumed, expected = again.tensors(), ours.tensors()
    assert resumed.keys() == expected.keys()
    assert all((resumed[name] == tensor).all() for name, tensor in expected.items())


def test_where_no_kernel_runs_it_says_so(both):
    ours, theirs, _, _ = both
    assert ours.fallbacks() == ["without a CUDA device every kernel is plain PyTorch"]
    assert theirs.fallbacks() == []
