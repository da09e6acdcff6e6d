"""Each error that no throughput figure shows must be caught, here in networks of two narrow blocks."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from planted_in_transformers import PLANTED, Planted, margin, observed

from trainmark.workloads.bert import shared as bert_model
from trainmark.workloads.gpt2 import shared as gpt2_model
from trainmark.workloads.llama import shared as llama_model
from trainmark.workloads.transformers.conformance import observe, reference
from trainmark.workloads.transformers.conformance.reference import global_norm
from trainmark.workloads.transformers.declare import comparison

MODELS = {"gpt2": gpt2_model, "bert": bert_model, "llama": llama_model}
NARROW = {"layers": 2, "width": 32, "hidden": 64, "vocabulary": 64, "positions": 40}
NO_ERROR = Planted(())


@pytest.fixture(scope="module", autouse=True)
def narrow_networks():
    """References of narrow networks, computed here; a clip between the norms of their two batches."""
    with pytest.MonkeyPatch.context() as change:
        for model in MODELS.values():
            shape = model.SIZES[observe.SIZE]._replace(**NARROW)
            change.setitem(model.SIZES, observe.SIZE, shape)
        for family in MODELS:
            change.setitem(observe.CONSTANTS, family, observe.Constants(clip=between_norms(family)))
        change.setattr(reference, "_given", cache(reference._given.__wrapped__))
        change.setattr(reference, "expected", cache(computed))
        for family in MODELS:
            for optimizer in reference.network(family).optimizers:
                for ranks in reference.RANKS:
                    reference.expected(family, optimizer, ranks)
        yield


def between_norms(family: str) -> float:
    net = reference.network(family)
    weights = {name: value.astype(np.float64) for name, value in observe.initial_weights(net.shapes).items()}
    batches = net.batches(net.shapes, 0).values()
    norms = [global_norm(net.gradients(weights, batch)[1]) for batch in batches]
    return float(np.sqrt(np.prod(norms)))


def computed(family: str, optimizer: str, ranks: int):
    shown = reference.recorded(reference.observe(reference.network(family), optimizer, ranks))
    return [{**shown, "losses": losses} for losses in shown["losses"]]


@pytest.mark.parametrize("family", MODELS)
@pytest.mark.parametrize("ranks", reference.RANKS)
def test_without_an_error_a_training_in_float32_conforms(family, ranks):
    net = reference.network(family)
    shown = reference.observe(net, net.optimizers[0], ranks, np.float32)
    assert comparison(family, net.optimizers[0])(shown).differs == ()


# What a decoder's optimizer can have wrong is tried in one of the two.
TRIED = [
    (family, error)
    for family, errors in PLANTED.items()
    for error in errors
    if family != "llama" or error not in PLANTED["gpt2"]
]


@pytest.mark.parametrize(("family", "error"), TRIED)
def test_a_planted_error_is_caught(family, error):
    share, _ = margin(family, PLANTED[family][error])
    assert share > 3


def test_a_comparison_names_the_rank_the_figure_and_the_tolerance():
    _, shown = observed("gpt2", PLANTED["gpt2"]["gradients summed over the ranks"])
    differs = comparison("gpt2", "adamw")(shown).differs
    assert differs[0].startswith("rank 0: the global gradient norm (gentle batch) is off by")


def test_a_tensor_of_another_shape_is_the_only_difference():
    _, (shown,) = observed("llama", NO_ERROR)
    shown["shapes"]["head.weight"] = [64, 64]
    assert comparison("llama", "adamw")([shown]).differs == (
        "head.weight has the shape [64, 64] instead of [64, 32]",
    )


def test_a_moment_that_is_not_a_number_differs():
    _, (shown,) = observed("gpt2", NO_ERROR)
    shown["moments"]["second/norm.bias"] = [float("nan")] * 8
    (difference,) = comparison("gpt2", "adamw")([shown]).differs
    assert difference.startswith("the second moment of norm.bias after the last step is off by nan")
