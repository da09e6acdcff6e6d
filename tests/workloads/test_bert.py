"""BERT's pre-training in PyTorch: its batches, its optimizer, its evaluation, a resumed training."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from trainmark.workloads.bert import pytorch as bert
from trainmark.workloads.bert.shared import SPEC
from trainmark.workloads.common.refusal import Refusal, check_machine
from trainmark.workloads.transformers.frameworks import pytorch as transformer
from trainmark.workloads.transformers.training import batches

SMALL = ("--size", "mini", "--batch", "4", "--length", "32")


def options(*arguments: str) -> Any:
    return SPEC.parse([*SMALL, *arguments], "bert")


def training(opt: Any) -> Any:
    return transformer.Training(opt, bert.build)


@pytest.fixture(scope="module")
def batch() -> Any:
    return batches(options(), 1)[0]


def test_synthetic_sequences_are_full_and_mask_distinct_tokens_behind_the_first(batch: Any) -> None:
    tokens, _, lengths, positions, labels, _ = batch
    assert (lengths == tokens.shape[1]).all() and (labels >= 0).all()
    assert positions.min() > 0 and (np.diff(positions, axis=1) > 0).all()


def test_the_recipe_has_the_optimizer_unless_another_is_asked_for() -> None:
    names = [options(*extra).recipe.optimizer for extra in ((), ("--recipe", "google-adamw"))]
    assert names == ["lamb", "adamw"]
    assert options("--optimizer", "adamw").recipe.optimizer == "adamw"


def test_lamb_is_refused_where_pytorch_has_none() -> None:
    with pytest.raises(Refusal, match="LAMB"):
        check_machine(SPEC.refusals, "pytorch", options("--engine", "plain"))


def test_an_evaluation_counts_no_sequence_that_fills_up_a_batch(batch: Any) -> None:
    opt = options()
    opt.padded = True
    model = training(opt)
    whole = model.evaluate(*model.place(*batch))()
    first = [part[:2] for part in batch]
    filling = [np.zeros_like(part[:2]) for part in batch]
    filling[4:] = [np.full_like(part, -1) for part in filling[4:]]
    counts = model.evaluate(*model.place(*map(np.concatenate, zip(first, filling, strict=True))))()
    rest = model.evaluate(*model.place(*(part[2:] for part in batch)))()
    assert np.add(counts, rest) == pytest.approx(whole, rel=1e-5)


def test_a_training_goes_on_from_its_tensors_bit_for_bit(batch: Any) -> None:
    first, second = training(options()), training(options("--seed", "1"))
    placed = first.place(*batch)
    for _ in range(2):
        first.step(*placed, rate=1e-3)
    second.load(first.tensors(), first.momenta(), first.rest())
    losses = [[model.step(*placed, rate=1e-3).item() for _ in range(2)] for model in (first, second)]
    assert losses[0] == losses[1]
