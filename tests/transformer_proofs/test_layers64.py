"""The float64 reference is right: by finite differences, by PyTorch's autograd, by PyTorch's optimizers."""

from __future__ import annotations

import numpy as np
import pytest

from trainmark.workloads.common import layers64 as layer
from trainmark.workloads.common.conformance import total_norm
from trainmark.workloads.transformers.conformance import networks, reference
from trainmark.workloads.transformers.conformance import observe as initial
from trainmark.workloads.transformers.conformance.observe import observe
from trainmark.workloads.transformers.declare import comparison

FAMILIES = ("gpt2", "llama", "bert")
TRAININGS = [("gpt2", "adamw"), ("llama", "adamw"), ("bert", "lamb"), ("bert", "adamw")]
TOKENS = 5


def drawn(*shapes: tuple[int, ...]) -> list[np.ndarray]:
    random = np.random.RandomState(0)
    return [random.normal(0.3, 1.0, shape) for shape in shapes]


def heads(count: int) -> tuple[int, ...]:
    return (2, count, TOKENS, 4)


CAUSAL = {"allowed": networks.causal(TOKENS)}
LABELS = np.array([[3, -1, 0], [5, 5, -1]])
LAYERS = {
    "embedding": (layer.embedding, drawn((7, 3)), {"ids": np.array([[0, 2, 2], [6, 0, 2]])}),
    "addition": (layer.addition, drawn((2, 3), (2, 3)), {}),
    "product": (layer.product, drawn((2, 3), (2, 3)), {}),
    "linear": (layer.linear, drawn((2, 3, 4), (5, 4), (5,)), {}),
    "linear without bias": (layer.linear, drawn((2, 3, 4), (5, 4)), {}),
    "layer norm": (layer.layer_norm, drawn((2, 3, 6), (6,), (6,)), {"epsilon": 0.1}),
    "RMSNorm": (layer.rms_norm, drawn((2, 3, 6), (6,)), {"epsilon": 0.1}),
    "GELU by tanh": (layer.gelu_tanh, drawn((4, 6)), {}),
    "GELU by erf": (layer.gelu_erf, drawn((4, 6)), {}),
    "SiLU": (layer.silu, drawn((4, 6)), {}),
    "tanh": (layer.tanh, drawn((4, 6)), {}),
    "part": (layer.part, drawn((2, 3, 6)), {"index": 1, "parts": 3}),
    "split heads": (layer.split_heads, drawn((2, 3, 8)), {"heads": 2}),
    "merge heads": (layer.merge_heads, drawn(heads(2)), {}),
    "rotary": (layer.rotary, drawn(heads(2)), {"base": 100.0}),
    "causal attention": (layer.attention, drawn(heads(2), heads(2), heads(2)), CAUSAL),
    "padded attention": (
        layer.attention,
        drawn(heads(2), heads(2), heads(2)),
        {"allowed": networks.within(np.array([2, 5]), TOKENS)},
    ),
    "grouped-query attention": (layer.attention, drawn(heads(4), heads(2), heads(2)), CAUSAL),
    "gather": (layer.gather, drawn((2, 4, 3)), {"positions": np.array([[1, 1, 0], [3, 2, 3]])}),
    "cross entropy": (layer.cross_entropy, drawn((2, 3, 6)), {"labels": LABELS}),
    "smoothed cross entropy": (layer.cross_entropy, drawn((2, 3, 6)), {"labels": LABELS, "smoothing": 0.1}),
    "convolution 1x1": (layer.convolution, drawn((2, 2, 3, 3), (4, 2, 1, 1)), {"stride": 1}),
    "convolution 3x3": (layer.convolution, drawn((2, 2, 5, 5), (3, 2, 3, 3)), {"stride": 2}),
    "batch norm": (layer.batch_norm, drawn((2, 3, 2, 2), (3,), (3,)), {"epsilon": 0.1}),
    "ReLU": (layer.relu, drawn((4, 6)), {}),
    "max pool": (layer.max_pool, drawn((1, 2, 5, 5)), {}),
    "average pool": (layer.global_average_pool, drawn((2, 3, 2, 2)), {}),
}  # fmt: skip


@pytest.mark.parametrize("name", LAYERS)
def test_the_gradient_of_a_layer_is_that_of_finite_differences(name):
    apply, inputs, constants = LAYERS[name]
    output, backward = apply(*inputs, **constants)
    weights = np.random.RandomState(1).normal(size=output.shape)

    def value(changed: list[np.ndarray]) -> float:
        return float((apply(*changed, **constants)[0] * weights).sum())

    for index, gradient in enumerate(backward(weights)):
        for place in np.ndindex(inputs[index].shape):
            above, below = ([array.copy() for array in inputs] for _ in range(2))
            above[index][place] += 1e-5
            below[index][place] -= 1e-5
            slope = (value(above) - value(below)) / 2e-5
            assert gradient[place] == pytest.approx(slope, rel=1e-6, abs=1e-8), (index, place)


@pytest.fixture(scope="module")
def torch_trainings():
    pytest.importorskip("torch", reason="PyTorch is not installed; trainmark frameworks install pytorch")
    import torch_trainings

    return torch_trainings


@pytest.mark.parametrize("family", FAMILIES)
def test_a_network_has_the_loss_and_the_gradients_of_autograd(family, torch_trainings):
    import torch

    net = reference.network(family)
    batch = net.batches(net.shapes, 0)[initial.GENTLE]
    weights = {name: value.astype(np.float64) for name, value in initial.initial_weights(net.shapes).items()}
    loss, gradients = net.gradients(weights, batch)
    training = torch_trainings.TorchTraining(family, torch_trainings.Recipe(), torch.float64)
    tensors = {name: torch.tensor(value, requires_grad=True) for name, value in weights.items()}
    sums, counts = training.network(tensors, training.place(*batch), training.shape)
    total = (sums / counts).sum()
    total.backward()
    assert loss == pytest.approx(total.item(), rel=1e-12)
    for name, gradient in gradients.items():
        size = 1e-12 + 1e-9 * float(np.abs(gradient).max())
        np.testing.assert_allclose(gradient, tensors[name].grad.numpy(), rtol=1e-8, atol=size, err_msg=name)


def shown(torch_trainings, family, optimizer, dtype, accumulate=1):
    recipe = initial.conformance_recipe(torch_trainings.Recipe(optimizer), family)
    training = torch_trainings.TorchTraining(family, recipe, dtype, accumulate)
    return observe(torch_trainings.Options(recipe), training, training.shapes, training.make_batches)


def flat(value) -> list[float]:
    values = value.values() if isinstance(value, dict) else value
    return [value] if isinstance(value, float) else [number for part in values for number in flat(part)]


@pytest.mark.parametrize(("family", "optimizer"), TRAININGS)
def test_five_steps_of_pytorch_in_float64_give_the_shipped_reference(family, optimizer, torch_trainings):
    import torch

    observed = shown(torch_trainings, family, optimizer, torch.float64)
    (expected,) = reference.expected(family, optimizer, 1)
    for part in ("losses", *reference.RECORDED):
        right = np.array(flat(expected[part]))
        np.testing.assert_allclose(flat(observed[part]), right, rtol=1e-6, atol=1e-9, err_msg=part)


@pytest.mark.parametrize(("family", "optimizer"), TRAININGS)
def test_pytorch_in_float32_conforms_in_micro_batches_with_room_to_spare(family, optimizer, torch_trainings):
    import torch

    from trainmark.workloads.transformers.conformance.reference import rank_deviations

    observed = shown(torch_trainings, family, optimizer, torch.float32, accumulate=2)
    assert comparison(family, optimizer)([observed]).differs == ()
    (expected,) = reference.expected(family, optimizer, 1)
    assert max(figure.share for figure in rank_deviations(family, observed, expected)) < 0.4


@pytest.mark.parametrize(("family", "optimizer"), TRAININGS)
def test_the_shipped_reference_of_two_ranks_is_what_its_program_computes(family, optimizer):
    computed = reference.recorded(reference.observe(reference.network(family), optimizer, 2))
    shipped = reference.expected(family, optimizer, 2)
    for part in reference.RECORDED:
        np.testing.assert_allclose(flat(computed[part]), flat(shipped[0][part]), rtol=1e-6, atol=1e-9)
    assert flat(computed["losses"]) == pytest.approx(flat([rank["losses"] for rank in shipped]), rel=1e-8)


@pytest.mark.parametrize("family", FAMILIES)
def test_the_steep_batch_is_clipped_and_the_gentle_one_is_not(family):
    clip = initial.CONSTANTS[family].clip
    for ranks in reference.RANKS:
        optimizer = reference.network(family).optimizers[0]
        norms = reference.expected(family, optimizer, ranks)[0]["gradient_norms"]
        sizes = {kind: total_norm(parts) for kind, parts in norms.items()}
        assert sizes[initial.STEEP] == pytest.approx(clip, rel=1e-6)
        assert sizes[initial.GENTLE] < 0.95 * clip
