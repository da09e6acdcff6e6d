"""A whole fused step on a GPU, against float64, beside PyTorch's own mixed precision on the same input."""

from __future__ import annotations

import copy
from types import SimpleNamespace

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed; trainmark frameworks install pytorch")

from torch.nn import functional as F  # noqa: E402

from trainmark.workloads.resnet50.fused.step import FusedStep  # noqa: E402
from trainmark.workloads.resnet50.pytorch import ResNet50  # noqa: E402
from trainmark.workloads.resnet50.shared import recipe, tensors  # noqa: E402

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="PyTorch sees no CUDA device here")

HALF = {"amp": torch.float16, "bf16": torch.bfloat16}
SCALE = 128.0
RATE = 0.01
# What either rounds, it rounds at random: of two errors of one size, one is the larger.
NO_WORSE = 1.5
# At first, sixteen blocks make large differences of small ones, whoever computes them; calmer ones do less.
CALM = 0.2


@pytest.fixture
def untuned(monkeypatch):
    """What would be tried first is taken: kernels rather than libraries, and no time is spent on choosing."""
    from trainmark.workloads.common.kernel_tuning import tuner

    monkeypatch.setattr(tuner, "choose", lambda name, key, candidates, launch, device: candidates[0])


def options(precision):
    return SimpleNamespace(
        precision=precision, loss_scale=SCALE, world_size=1, recipe=recipe.find("ngc-90", 256)
    )


def reference(model, images, labels, precision=None):
    """The loss and the gradients by autograd: in float64, or under autocast."""
    model = copy.deepcopy(model)
    if precision is None:
        model, images = model.double(), images.double()
    model.to(memory_format=torch.channels_last)
    images = images.contiguous(memory_format=torch.channels_last)
    kind = HALF.get(precision, torch.float16)
    with torch.autocast("cuda", kind, enabled=precision is not None):
        logits = model(images)
        loss = F.cross_entropy(logits, labels, label_smoothing=recipe.find("ngc-90", 256).label_smoothing)
    (loss * SCALE).backward()
    named = model.named_tensors()
    gradients = {name: each.grad / SCALE for name, each in named.items() if not tensors.is_statistic(name)}
    statistics = {name: each.detach() for name, each in named.items() if tensors.is_statistic(name)}
    return loss.detach(), gradients, statistics


def fused(model, images, labels, precision):
    step = FusedStep(options(precision), copy.deepcopy(model), images.device)
    loss = step(images, labels)  # the rate is zero: no weight moves
    flat, parameters = step.parameters.gradient / step.scaler.value, step.parameters
    gradients = {name: parameters.view(flat, name) for name in parameters.trained()}
    statistics = {name: each for name, each in parameters.named.items() if tensors.is_statistic(name)}
    return loss, gradients, statistics


def far(actual, expected):
    """The distance of all tensors together, by their length."""
    away = sum((actual[name].double() - each.double()).square().sum() for name, each in expected.items())
    return (away / sum(each.double().square().sum() for each in expected.values())).sqrt().item()


@pytest.mark.parametrize("precision", ["amp", "bf16"])
@pytest.mark.parametrize(("images", "size"), [(32, 224), (7, 97), (13, 160)])
def test_a_step_is_no_further_from_float64_than_pytorchs_mixed_precision(untuned, images, size, precision):
    no_further(images, size, precision)


def test_nor_where_tiles_were_chosen_by_trying():
    no_further(64, 128, "amp")


def no_further(images, size, precision):
    torch.manual_seed(images)
    model = ResNet50().cuda()
    for name, tensor in model.named_tensors().items():
        if name.endswith("norm3.scale"):
            tensor.data.fill_(CALM)
    pixels, labels = torch.randn(images, 3, size, size).cuda(), torch.randint(0, 1000, (images,)).cuda()
    exact = reference(model, pixels, labels)
    theirs = reference(model, pixels, labels, precision)
    ours = fused(model, pixels, labels, precision)
    # A single number may be right by chance: one rounding of the loss is allowed besides.
    rounding = torch.finfo(HALF[precision]).eps * exact[0]
    assert abs(ours[0] - exact[0]) <= NO_WORSE * abs(theirs[0] - exact[0]) + rounding
    for actual, other, expected in zip(ours[1:], theirs[1:], exact[1:], strict=True):
        assert far(actual, expected) <= NO_WORSE * far(other, expected)


def test_in_float32_every_gradient_is_that_of_float64(untuned):
    torch.manual_seed(3)
    model = ResNet50().cuda()
    initial = tensors.initial_weights()
    for name, tensor in model.named_tensors().items():
        tensor.data.copy_(torch.from_numpy(initial[name]))
    pixels, labels = torch.randn(8, 3, 64, 64).cuda(), torch.randint(0, 1000, (8,)).cuda()
    torch.backends.cudnn.allow_tf32 = torch.backends.cuda.matmul.allow_tf32 = False
    _, expected, statistics = reference(model, pixels, labels)
    _, gradients, ours = fused(model, pixels, labels, "fp32")
    assert far(gradients, expected) < 1e-4
    assert far(ours, statistics) < 1e-5
