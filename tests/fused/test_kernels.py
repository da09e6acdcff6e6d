"""Each kernel does what its twin does, on random numbers and on sizes that fit no tile."""

from __future__ import annotations

import copy
import math
from itertools import product

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed; trainmark frameworks install pytorch")

from cases import cases  # noqa: E402
from matrices import (  # noqa: E402
    ROWS,
    assert_same,
    batch_norm_grad,
    convolution,
    joined,
    matrix,
    norm,
    normed,
    vector,
)

from trainmark.workloads.resnet50.fused import reference_ops  # noqa: E402
from trainmark.workloads.resnet50.fused.network import (  # noqa: E402
    INLINE,
    BatchNormGrad,
    ResidualSum,
)

KINDS = [torch.float32, torch.float16]
SHAPES = [(64, 256), (256, 64)]
WIDENING = [(256, 64), (256, 128)]
PICTURE = 3, 11, 7  # images, rows, columns


@pytest.fixture(autouse=True)
def fresh():
    torch.manual_seed(7)


@pytest.fixture
def both(kernels):
    """A call on the kernels and on the twins, each with inputs of its own."""

    def call(name, *inputs):
        inputs = [copy.deepcopy(inputs) for _ in range(2)]
        outputs = [
            getattr(ops, name)(*given) for ops, given in zip((kernels, reference_ops), inputs, strict=True)
        ]
        return outputs, inputs

    return call


@pytest.fixture
def way(request, kernels, monkeypatch):
    """In one kernel, in several, or with the library's product between: which is faster, a GPU decides."""
    from trainmark.workloads.common.kernel_tuning import tuner

    def choose(name, key, candidates, launch, device):
        return request.param if request.param in candidates else candidates[0]

    monkeypatch.setattr(tuner, "choose", choose)


def tried(names, *axes):
    return pytest.mark.parametrize(names, cases(*axes), indirect=["way"])


OPERANDS = {
    "a matrix": matrix,
    "to be normed": normed,
    "joined": joined,
}
ADDED = ["nothing", "a matrix", "a matrix with strides"]
WIDENED = ["a matrix", "every second of a matrix", "to be normed"]


@tried("way, kind, shape, operand", ["fused", "apart"], KINDS, SHAPES, list(OPERANDS))
def test_a_product_with_its_statistics(both, way, operand, shape, kind):
    inputs, outputs = shape
    x = OPERANDS[operand](inputs, kind)
    x = reference_ops.residual_add(x) if isinstance(x, ResidualSum) else x
    (computed, expected), given = both("conv1x1", x, convolution(outputs, inputs, kind))
    assert_same(computed.raw, expected.raw, kind)
    for part in ("factor", "offset", "mean", "deviation"):
        assert_same(getattr(computed, part), getattr(expected, part), kind)
    ours, theirs = (conv.norm for _, conv in given)
    assert_same(ours.mean, theirs.mean, kind)
    assert_same(ours.variance, theirs.variance, kind)


# What stops and what is added meet in one kernel: each combination of these three, in both kinds and shapes.
ENDS = list(product(["together", "apart"], OPERANDS, ADDED))


@pytest.mark.parametrize(
    "way, operand, added, kind, shape",
    [(*ends, kind, shape) for ends, kind, shape in cases(ENDS, KINDS, SHAPES)],
    indirect=["way"],
)
def test_both_gradients_of_a_product_with_the_sums_of_its_norms(both, way, added, operand, shape, kind):
    outputs, inputs = shape
    x = OPERANDS[operand](inputs, kind)
    x = reference_ops.residual_add(x) if isinstance(x, ResidualSum) else x
    spread = (3, 10, 5) if added == "a matrix with strides" else None
    rows = 3 * 5 * 3 if spread else ROWS
    addend = None if added == "nothing" else matrix(inputs, kind, rows)
    s = batch_norm_grad(outputs, kind, rectify=added == "nothing")
    conv = convolution(outputs, inputs, kind)
    onto = None if operand == "a matrix" else x
    (computed, expected), given = both("conv1x1_backward", s, x, conv, INLINE, onto, addend, spread)
    assert_same(given[0][2].gradient, given[1][2].gradient, kind)
    assert_same(computed[0], expected[0], kind)
    if isinstance(x, ResidualSum):
        assert_same(computed[1].sum(0), expected[1], kind)
    elif onto is not None:
        for partial, sums in zip(computed[1], expected[1], strict=True):
            assert_same(partial.sum(0), sums, kind)


@tried("way, kind, shape, operand, size", ["fused", "apart"], KINDS, WIDENING, WIDENED, [1.0, 1e-4])
def test_what_widens_there_and_back(kernels, way, size, operand, shape, kind):
    """Statistics and gradients that never read what they are of, against those that do."""
    outputs, inputs = shape
    picture = PICTURE if operand == "every second of a matrix" else None
    if operand == "to be normed":
        x = onto = normed(inputs, kind)
    else:  # far from its mean: what is subtracted is large
        x, onto = matrix(inputs, kind, math.prod(PICTURE) if picture else ROWS).relu() + 1, None
    convs = [convolution(outputs, inputs, kind)]
    convs.append(copy.deepcopy(convs[0]))
    ours, theirs = (
        ops.expand(copy.deepcopy(x), conv, picture)
        for ops, conv in zip((kernels, reference_ops), convs, strict=True)
    )
    for part in ("factor", "offset", "mean", "deviation"):
        assert_same(getattr(ours, part), getattr(theirs, part), kind)
    upper = (torch.randn(theirs.raw.shape[0], outputs) * size + size / 2).to(kind)
    totals = upper.float().view(3, -1, outputs).sum(1)
    computed, partial = kernels.expand_backward(upper, totals, ours, convs[0], onto)
    expected, sums = reference_ops.expand_backward(upper, totals.sum(0), theirs, convs[1], onto)
    assert_same(computed, expected, kind, times=2)
    assert_same(convs[0].gradient, convs[1].gradient, kind, times=2)
    for name in ("mean", "variance", "scale_gradient", "bias_gradient"):
        assert_same(getattr(convs[0].norm, name), getattr(convs[1].norm, name), kind, times=2)
    if onto is not None:
        assert_same(partial[0].sum(0), sums[0], kind, times=2)
        assert_same(partial[1].sum(0), sums[1], kind, times=2)


@tried("way, kind, shortcut", ["fused", "apart"], KINDS, ["a matrix", "what widened as well"])
def test_a_block_ends_joined(kernels, way, shortcut, kind):
    x, others = normed(64, kind), [matrix(256, kind)] * 2
    conv, other = convolution(256, 64, kind), convolution(256, 128, kind)
    if shortcut != "a matrix":
        operand = matrix(128, kind)
        others = [ops.expand(operand, copy.deepcopy(other)) for ops in (kernels, reference_ops)]
    computed, expected = (
        ops.residual_add(ResidualSum(ops.expand(x, copy.deepcopy(conv)), given)).value
        for ops, given in zip((kernels, reference_ops), others, strict=True)
    )
    assert_same(computed, expected, kind)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("rectify", [False, True])
def test_what_is_done_channel_by_channel(both, rectify, kind):
    (computed, expected), given = both("statistics", matrix(64, kind) + 30, norm(64))
    assert_same(computed.deviation, expected.deviation, torch.float32)
    assert_same(given[0][1].variance, given[1][1].variance, torch.float32)
    upper, x = matrix(64, kind), normed(64, kind)
    (partial, sums), _ = both("sums", upper, x, rectify)
    assert_same(partial[0].sum(0), sums[0], torch.float32)
    assert_same(partial[1].sum(0), sums[1], torch.float32)
    numbers = vector(64), vector(64), vector(64)
    (computed, expected), _ = both("batch_norm_backward", BatchNormGrad(upper, x, *numbers, rectify=rectify))
    assert_same(computed, expected, kind)
    (computed, expected), _ = both("bn_relu", x)
    assert_same(computed, expected, kind)


def test_the_coefficients_of_a_batch_norm_gradient_and_the_gradients_of_a_norm(kernels):
    x, upper, ours, theirs = normed(64, torch.float32), matrix(64, torch.float32), norm(64), None
    theirs = copy.deepcopy(ours)
    computed = kernels.coefficients(kernels.sums(upper, x), ours, x, ROWS)
    for ours_part, part in zip(
        computed, reference_ops.coefficients(reference_ops.sums(upper, x), theirs, x, ROWS), strict=True
    ):
        assert_same(ours_part, part, torch.float32)
    assert_same(ours.scale_gradient, theirs.scale_gradient, torch.float32)
    assert_same(ours.bias_gradient, theirs.bias_gradient, torch.float32)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("layout", [torch.contiguous_format, torch.channels_last])
def test_the_stem_is_the_convolution_of_seven_by_seven(kernels, both, layout, kind):
    images = torch.randn(3, 3, 21, 14).contiguous(memory_format=layout)
    (folded, expected), _ = both("fold", images, kind)
    assert torch.equal(folded, expected)
    weights = (torch.randn(64, 3, 7, 7) / 12).to(kind)
    computed = kernels.stem(folded, kernels.fold_weight(weights), norm(64))
    plain = torch.nn.functional.conv2d(images.to(kind).float(), weights.float(), stride=2, padding=3)
    assert_same(computed.raw, plain.permute(0, 2, 3, 1).flatten(0, 2), kind)
    assert_same(computed.mean, plain.mean((0, 2, 3)), kind)


def test_a_folded_weight_unfolds_to_itself(kernels):
    weights = torch.randn(64, 3, 7, 7)
    assert torch.equal(kernels.unfold_weight(kernels.fold_weight(weights)), weights)


@pytest.mark.parametrize("kind", KINDS)
def test_pooling(both, kind):
    x = normed(64, kind, 3 * 11 * 7)
    ((pooled, which), (expected, places)), _ = both("pool", x, PICTURE)
    assert_same(pooled.raw, expected.raw, kind)
    assert torch.equal(which, places)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("picture", [(3, 11, 7), (2, 4, 70)])
def test_back_through_the_pooling_to_the_weights_of_the_stem(both, picture, kind):
    images, rows, columns = picture
    pooled = images * ((rows + 1) // 2) * ((columns + 1) // 2)
    x = normed(64, kind, math.prod(picture))
    folded = reference_ops.fold(torch.randn(images, 3, 2 * rows - 1, 2 * columns), kind)
    s = BatchNormGrad(matrix(64, kind, pooled), x, vector(64), vector(64), vector(64))
    which = torch.randint(0, 9, (pooled, 64), dtype=torch.uint8)
    (computed, expected), _ = both("stem_backward", s, which, folded, picture)
    assert_same(computed, expected, kind)


@pytest.mark.parametrize("kind", KINDS)
def test_back_from_the_mean(both, kind):
    last = reference_ops.residual_add(joined(2048, kind, rows=3 * 49))
    ((computed, partial), (expected, total)), _ = both("head_backward", torch.randn(3, 2048), last, 3)
    assert_same(computed, expected, kind)
    assert_same(partial.sum(0), total, kind)
