"""PyTorch's programs of the three transformers, sharded over two ranks and four, against the reference."""

from __future__ import annotations

import sys

import pytest

from trainmark.runner import conformance
from trainmark.workloads import registry
from trainmark.workloads.declaration import Comparison, Variant
from trainmark.workloads.transformers.conformance import reference

torch = pytest.importorskip("torch", reason="PyTorch is not installed; pip install 'trainmark[pytorch]'")


def check_on(ranks, workload, variant):
    family = registry.find(workload)
    command = conformance.program(family, "pytorch", sys.executable, variant, "cpu")
    return conformance.checked(family, command, ranks, variant, stop_asked=lambda: False)


@pytest.mark.parametrize(
    ("workload", "label"),
    [
        ("gpt2", "fsdp, accumulate 2"),
        ("llama", "fsdp, accumulate 2"),
        ("bert", "adamw, fsdp, accumulate 2"),
    ],
)
def test_two_sharded_ranks_in_micro_batches_train_the_same_transformer(workload, label):
    check = check_on(2, workload, conformance.variant_of(registry.find(workload), label))
    assert check.passed, check


def test_four_sharded_ranks_have_the_losses_of_four_in_float64():
    losses = []

    def collect(shown):
        losses.extend(rank["losses"] for rank in shown)
        return Comparison((), 0.0)

    check = check_on(4, "gpt2", Variant("four ranks", ("--sharding", "fsdp"), compare=collect))
    assert check.passed, check
    expected = reference.recorded(reference.observe(reference.network("gpt2"), "adamw", 4))["losses"]
    assert losses == [pytest.approx(rank, rel=1e-6) for rank in expected]
