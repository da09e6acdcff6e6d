"""The Markov source: its entropy against brute force and against what it draws; its bytes."""

import hashlib
import itertools
import math

import numpy as np
import pytest

from trainmark.workloads.common import chance
from trainmark.workloads.tokens import markov
from trainmark.workloads.tokens.markov import AliasTables, Markov, best_loss


def block_entropy(source, length):
    """The entropy of `length` tokens in a row, by going through all of them."""
    rows, stationary = source.transitions(), source.stationary()
    ids = range(source.vocabulary)
    mass = {
        group: sum(1 / (rank + 1) for rank in ids if rank % source.classes == group) for group in range(2)
    }
    total = 0.0
    for text in itertools.product(ids, repeat=length):
        groups = [token % source.classes for token in text]
        share = 0.0
        for state, weight in enumerate(stationary):
            for group in groups:
                weight *= rows[state][group]
                state = (state * source.classes + group) % source.states
            share += weight
        for token, group in zip(text, groups, strict=True):
            share *= 1 / (token + 1) / mass[group]
        total -= share * math.log(share)
    return total


@pytest.mark.parametrize("order", [1, 2])
def test_the_plateaus_are_the_conditional_entropies_of_all_texts(order):
    source = Markov(5, order, 2, seed=3)
    entropies = [0.0, *(block_entropy(source, length) for length in range(1, order + 3))]
    steps = np.diff(entropies)
    assert source.plateaus() == pytest.approx(steps[: order + 1], abs=1e-10)
    assert source.entropy == pytest.approx(steps[order + 1], abs=1e-10)  # more context tells nothing


@pytest.mark.parametrize(("order", "classes", "vocabulary"), [(1, 16, 512), (2, 16, 512), (3, 8, 5000)])
def test_the_true_conditional_loses_the_entropy_on_what_is_drawn(order, classes, vocabulary):
    source = Markov(vocabulary, order, classes, seed=5)
    ids, _ = source.draw("train", 0, 1_000_000)
    ids = ids.astype(np.int64)
    groups = ids % classes
    weights = 1 / (np.arange(vocabulary) + 1)
    mass = np.bincount(np.arange(vocabulary) % classes, weights)
    state = np.zeros(len(ids) - order, np.int64)
    for lag in range(order, 0, -1):
        state = state * classes + groups[order - lag : len(ids) - lag]
    losses = -np.log(source.transitions()[state, groups[order:]]) - np.log(
        (weights / mass[np.arange(vocabulary) % classes])[ids[order:]]
    )
    # Neighbours depend on each other: the spread of the mean comes from the means of long blocks.
    blocks = losses[: len(losses) // 1000 * 1000].reshape(-1, 1000).mean(axis=1)
    error = blocks.std(ddof=1) / math.sqrt(len(blocks))
    assert abs(losses.mean() - source.entropy) < 4 * error
    assert error < 0.005


def test_every_token_of_context_lowers_the_best_loss_by_a_lot():
    for order in (1, 2, 3):
        plateaus = Markov(512, order, 16, seed=1).plateaus()
        assert len(plateaus) == order + 1
        assert all(before - after > 0.2 for before, after in itertools.pairwise(plateaus))


def test_ids_are_common_in_the_order_of_their_ranks():
    ids, _ = Markov(512, 2, 16, seed=0).draw("train", 0, 500_000)
    counts = np.bincount(ids, minlength=512)
    by_class = counts.reshape(-1, 16)  # ids of a class are a column
    assert (by_class[0] > by_class[5]).all()
    expected = (
        by_class.sum(axis=0) * (1 / np.arange(1, 17)) / (1 / np.arange(1, 513)).reshape(-1, 16).sum(axis=0)
    )
    assert by_class[0] == pytest.approx(expected, rel=0.05)


def one_by_one(source, split, count):
    """The chain drawn token after token."""
    tables = source._tables()[0]
    bits = source._bits(split, 0, markov.BURN_IN + count) >> np.uint64(32)
    state, groups = 0, []
    for number in bits:
        begins = np.array([state * source.classes])
        group = int(tables.draw(np.array([number]), begins, np.uint64(source.classes))[0])
        groups.append(group)
        state = (state * source.classes + group) % source.states
    return groups[markov.BURN_IN :]


def test_blocks_drawn_side_by_side_are_one_chain(monkeypatch):
    monkeypatch.setattr(
        markov, "SHORTEST_BLOCK", 50
    )  # short ones, of which some do not meet the first attempt
    source = Markov(64, 3, 4, seed=2)
    ids, _ = source.draw("val", 0, 4000)
    assert (ids % 4).tolist() == one_by_one(source, "val", 4000)


def test_a_corpus_is_the_same_in_pieces_of_any_size():
    source = Markov(512, 2, 16, seed=9)
    whole, _ = source.draw("train", 0, 30_000)
    state, at, parts = None, 0, []
    for size in (1, 999, 20_000, 9_000):
        ids, state = source.draw("train", at, size, state)
        parts.append(ids)
        at += size
    assert np.concatenate(parts).tolist() == whole.tolist()


def test_the_same_source_gives_the_same_bytes_on_every_machine():
    ids, _ = Markov(512, 2, 16, seed=7).draw("train", 0, 300_000)
    assert hashlib.sha256(ids.astype("<u4").tobytes()).hexdigest()[:16] == "05ac101388e0000d"


def test_another_seed_or_split_is_another_corpus():
    corpora = [
        Markov(512, 2, 16, seed).draw(split, 0, 100)[0] for seed in (0, 1) for split in ("train", "val")
    ]
    assert len({corpus.tobytes() for corpus in corpora}) == 4


def test_a_table_draws_its_weights():
    weights = [1, 0, 70, 29, 100]
    tables = AliasTables([[5, 5], weights])
    bits = chance.bits(1, np.arange(1_000_000, dtype=np.uint64)) >> np.uint64(32)
    counts = np.bincount(tables.draw(bits, np.full(len(bits), 2), np.uint64(5)), minlength=5)
    assert counts / len(bits) == pytest.approx(np.array(weights) / 200, abs=0.002)
    assert counts[1] == 0


def test_the_first_tokens_of_a_window_cannot_be_predicted_as_well():
    assert best_loss([3.0, 2.0, 1.0], 1) == 2.0
    assert best_loss([3.0, 2.0, 1.0], 4) == pytest.approx((2 + 1 + 1 + 1) / 4)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ((8, 0, 2), "the order is 0"),
        ((8, 1, 1), "1 classes"),
        ((8, 1, 16), "a vocabulary of 8 has no 16 classes"),
        ((9999, 3, 64), "16777216 transitions"),
    ],
)
def test_a_source_that_cannot_be_is_refused(arguments, sentence):
    with pytest.raises(ValueError, match=sentence):
        Markov(*arguments)
