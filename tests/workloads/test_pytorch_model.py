from __future__ import annotations

import math

import pytest
from pytorch_workload import CPU, asked, synthetic_batch, torch, workload
from torch.utils.flop_counter import FlopCounterMode

from trainmark.workloads.resnet50.shared import recipe


@pytest.fixture(scope="module")
def model():
    torch.manual_seed(0)
    return workload.ResNet50()


@pytest.fixture(scope="module")
def shapes_only():
    """On the meta device nothing is computed, so the full image size costs nothing."""
    with torch.device("meta"):
        return workload.ResNet50()


def convolutions(model):
    return [module for module in model.modules() if isinstance(module, torch.nn.Conv2d)]


def test_the_model_has_25_557_032_parameters(model):
    assert sum(parameter.numel() for parameter in model.parameters()) == 25_557_032


def test_a_down_sampling_block_strides_in_its_3x3_convolution(model):
    down = [block for block in model.blocks if block.conv2.stride == (2, 2)]
    assert [block.conv2.in_channels for block in down] == [128, 256, 512]
    assert all(block.conv2.kernel_size == (3, 3) for block in down)
    assert all(block.conv1.stride == block.conv3.stride == (1, 1) for block in model.blocks)


def test_no_convolution_has_a_bias(model):
    assert len(convolutions(model)) == 53
    assert all(layer.bias is None for layer in convolutions(model))


def test_each_stage_halves_the_image_and_doubles_the_channels(shapes_only):
    x = shapes_only.stem(torch.empty(1, 3, 224, 224, device="meta"))
    sizes = [tuple(x.shape[1:])]
    for block in shapes_only.blocks:
        x = block(x)
        sizes.append(tuple(x.shape[1:]))
    distinct = list(dict.fromkeys(sizes))
    assert distinct == [(64, 56, 56), (256, 56, 56), (512, 28, 28), (1024, 14, 14), (2048, 7, 7)]
    assert [sizes.count(size) for size in distinct] == [1, 3, 4, 6, 3]


def test_the_recipe_counts_the_work_that_torch_counts(shapes_only):
    """Torch's count lacks one thing: nobody asks for the gradient of the images, a third of the first layer.

    The recipe keeps the usual rule (backward is twice the forward), so it stands about one per cent higher.
    """
    with FlopCounterMode(display=False) as counter:
        shapes_only(torch.empty(1, 3, 224, 224, device="meta")).sum().backward()
    inputs, outputs, kernel, side = next(recipe.convolutions(224))
    images_gradient = 2 * inputs * outputs * kernel**2 * side**2
    assert counter.get_total_flops() == recipe.flops_per_image(224) - images_gradient
    assert images_gradient < 0.01 * recipe.flops_per_image(224)


def test_convolutions_start_normal_with_variance_two_over_fan_in(model):
    for layer in convolutions(model):
        fan_in = layer.in_channels * layer.kernel_size[0] ** 2
        weights, expected = layer.weight.detach(), math.sqrt(2 / fan_in)
        assert weights.std().item() == pytest.approx(expected, rel=5 / math.sqrt(2 * weights.numel()))
        # A uniform distribution of this deviation would end at 1.73 of them.
        assert weights.abs().max() > 3 * expected


def test_the_classifier_starts_with_variance_one_over_fan_in_and_no_bias(model):
    weights = model.classifier.weight.detach()
    assert weights.std().item() == pytest.approx(math.sqrt(1 / 2048), rel=0.005)
    assert not model.classifier.bias.any()


def test_nhwc_is_kept_through_the_whole_network():
    opt = asked("--layout", "NHWC", "--image-size", "64")
    model = workload.build_model(opt, CPU)
    lost = []

    def look(module, inputs, output):
        if output.dim() == 4 and not output.is_contiguous(memory_format=torch.channels_last):
            lost.append(module)

    for module in model.modules():
        module.register_forward_hook(look)
    images, _ = synthetic_batch(opt, CPU)
    assert not images.is_contiguous()
    model(images).sum().backward()
    assert not lost
    assert model.blocks[0].conv2.weight.grad.is_contiguous(memory_format=torch.channels_last)


def test_the_seed_decides_the_weights_and_not_the_rank():
    one, other = asked(), asked("--seed", "1")
    first = workload.build_model(one, CPU).classifier.weight
    one.rank = 1
    assert torch.equal(first, workload.build_model(one, CPU).classifier.weight)
    assert not torch.equal(first, workload.build_model(other, CPU).classifier.weight)


def test_ranks_train_on_different_images():
    opt = asked()
    workload.build_model(opt, CPU)
    rank0, _ = synthetic_batch(opt, CPU)
    opt.rank = 1
    workload.build_model(opt, CPU)
    rank1, _ = synthetic_batch(opt, CPU)
    assert not torch.equal(rank0, rank1)
