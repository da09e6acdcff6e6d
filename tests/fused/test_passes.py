"""The passes that were written out by hand, against autograd's, in float64."""

from __future__ import annotations

import copy

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed; trainmark frameworks install pytorch")

from torch.nn import functional as F  # noqa: E402

from trainmark.workloads.resnet50.fused import reference_ops  # noqa: E402
from trainmark.workloads.resnet50.fused.network import Passes  # noqa: E402
from trainmark.workloads.resnet50.fused.step import FlatParameters  # noqa: E402
from trainmark.workloads.resnet50.pytorch import ResNet50  # noqa: E402
from trainmark.workloads.resnet50.shared import tensors  # noqa: E402


class Late:
    """Does what was begun as late as a stream beside may do it: when it is waited for."""

    def __init__(self):
        self.now, self.before = [], []

    def begin(self, work):
        self.now.append(work)

    def turn(self):
        for work in self.before:
            work()
        self.before, self.now = self.now, []


def test_a_block_is_given_when_its_gradients_are_there_and_not_before():
    torch.manual_seed(0)
    parameters = FlatParameters(ResNet50().double(), torch.float64)
    passes = Passes(parameters, reference_ops, Late())
    features = passes.forward(torch.randn(2, 3, 32, 32).double())
    given = 0
    for layers in passes.backward(torch.randn(2, features.shape[1]).double()):
        given += 1
        convolutions = [layers] if layers is passes.stem else [layers.first, layers.second, layers.third]
        assert all(each.gradient.any() for each in convolutions)
    assert given == 17


def test_every_gradient_and_running_statistic_is_that_of_autograd():
    images, rows, columns = 3, 45, 38  # odd ones, so that halving rounds
    torch.manual_seed(0)
    reference = ResNet50().double()
    model = copy.deepcopy(reference)
    parameters = FlatParameters(model, torch.float64)
    pixels, labels = torch.randn(images, 3, rows, columns).double(), torch.randint(0, 1000, (images,))

    passes = Passes(parameters, reference_ops)
    features = passes.forward(pixels).view(images, -1, 2048).mean(1).requires_grad_()
    loss = F.cross_entropy(model.classifier(features), labels)
    for _ in passes.backward(*torch.autograd.grad(loss, features)):
        pass
    expected = F.cross_entropy(reference(pixels), labels)
    expected.backward()

    torch.testing.assert_close(loss, expected)
    for name, tensor in reference.named_tensors().items():
        if tensors.is_statistic(name):
            torch.testing.assert_close(parameters.named[name], tensor, msg=name)
        elif not name.startswith("classifier"):
            torch.testing.assert_close(parameters.view(parameters.gradient, name), tensor.grad, msg=name)
