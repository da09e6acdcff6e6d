"""The update of all weights in one pass, against PyTorch's optimiser."""

from __future__ import annotations

import copy
from types import SimpleNamespace

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed; trainmark frameworks install pytorch")

from trainmark.workloads.resnet50.fused import reference_ops  # noqa: E402
from trainmark.workloads.resnet50.fused.step import FlatParameters  # noqa: E402
from trainmark.workloads.resnet50.pytorch import ResNet50  # noqa: E402
from trainmark.workloads.resnet50.shared import tensors  # noqa: E402

MOMENTUM, DECAY, SCALE = 0.875, 1e-2, 128.0
RATE = torch.tensor(0.1)


def stepped(ops, parameters, *, overflow=False):
    """The parameters after two updates with random gradients."""
    torch.manual_seed(1)
    overflow_flag = torch.zeros(())
    for _ in range(2):
        parameters.gradient.copy_(torch.randn(parameters.gradient.shape) * SCALE)
        if overflow:
            parameters.gradient[-1] = float("inf")
        ops.find_overflow(parameters.gradient, overflow_flag)
        ops.update(parameters, RATE, 1 / torch.tensor(SCALE), overflow_flag, MOMENTUM, DECAY)
    return parameters


def test_two_updates_are_those_of_pytorchs_optimiser():
    torch.manual_seed(0)
    model = ResNet50()
    parameters = stepped(reference_ops, FlatParameters(copy.deepcopy(model), torch.float16))
    plain = copy.deepcopy(model).named_tensors()
    trained = {name: tensor for name, tensor in plain.items() if not tensors.is_statistic(name)}
    groups = [
        {"params": [trained[n] for n in trained if tensors.is_decayed(n) == decays], "weight_decay": decay}
        for decays, decay in ((True, DECAY), (False, 0.0))
    ]
    optimizer = torch.optim.SGD(groups, lr=RATE.item(), momentum=MOMENTUM)
    torch.manual_seed(1)
    for _ in range(2):
        flat = torch.randn(parameters.gradient.shape)
        for name, tensor in trained.items():
            tensor.grad = parameters.view(flat, name).clone()
        optimizer.step()
    for name, tensor in trained.items():
        torch.testing.assert_close(parameters.named[name], tensor, msg=name)
        torch.testing.assert_close(parameters.view(parameters.half, name), tensor.half(), msg=name)


@pytest.mark.parametrize("overflow", [False, True])
def test_the_kernel_does_what_its_twin_does(kernels, overflow):
    before = torch.randn(10_001)
    flat = SimpleNamespace(
        master=before.clone(),
        momentum=torch.zeros_like(before),
        gradient=torch.zeros_like(before),
        half=before.half(),
        decayed=7_000,
    )
    expected = stepped(reference_ops, copy.deepcopy(flat), overflow=overflow)
    actual = stepped(kernels, flat, overflow=overflow)
    torch.testing.assert_close(actual.master, expected.master)
    torch.testing.assert_close(actual.momentum, expected.momentum)
    torch.testing.assert_close(actual.half, expected.half)
    assert torch.equal(actual.master, before) == overflow
