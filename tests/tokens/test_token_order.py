"""Which windows make which step: each once a pass, whatever the ranks, and from any step on."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from trainmark.workloads.tokens import loader

sizes = st.integers(1, 5000)
seeds = st.integers(0, 1 << 40)


@given(size=sizes, key=seeds)
def test_a_permutation_has_every_place_once(size, key):
    assert sorted(loader.permuted(np.arange(size), size, key).tolist()) == list(range(size))


@given(size=st.integers(1, 1 << 40), key=seeds, place=st.integers(0, 1 << 40))
def test_a_place_of_a_huge_permutation_is_computed_alone(size, key, place):
    (window,) = loader.permuted(np.array([place % size]), size, key)
    assert 0 <= window < size


def test_every_window_is_as_likely_in_every_place():
    size, draws = 7, 700
    permutations = np.array([loader.permuted(np.arange(size), size, seed) for seed in range(draws)])
    for column in permutations.T:
        counts = np.bincount(column, minlength=size)
        chi_squared = ((counts - draws / size) ** 2 / (draws / size)).sum()
        assert chi_squared < 30  # of 6 degrees of freedom: p = 4e-5


@given(size=st.integers(1, 300), seed=seeds, passes=st.integers(1, 4))
def test_every_window_comes_once_a_pass_and_each_pass_has_its_own_order(size, seed, passes):
    windows = loader.WindowOrder(size, seed).windows(0, passes * size).reshape(passes, size)
    assert (np.sort(windows, axis=1) == np.arange(size)).all()
    if size > 50:
        assert len({tuple(one_pass) for one_pass in windows.tolist()}) == passes


@given(
    size=st.integers(50, 10_000),
    seed=seeds,
    sequences=st.integers(1, 8),
    ranks=st.sampled_from([1, 2, 3, 4]),
    step=st.integers(0, 3000),
)
def test_ranks_share_the_global_batch_of_one_rank(size, seed, sequences, ranks, step):
    alone = loader.WindowOrder(size, seed).windows(*loader.rank_share(step, sequences * ranks, 0, 1))
    shared = [
        loader.WindowOrder(size, seed).windows(*loader.rank_share(step, sequences, rank, ranks))
        for rank in range(ranks)
    ]
    assert np.concatenate(shared).tolist() == alone.tolist()


@given(size=st.integers(300, 10_000), seed=seeds, begin=st.integers(0, 9000), count=st.integers(0, 600))
def test_going_on_in_the_middle_is_the_same_as_having_come_there(size, seed, begin, count):
    one = loader.WindowOrder(size, seed)
    before = one.windows(0, begin)
    assert len(before) == begin
    after = one.windows(begin, begin + count)
    assert loader.WindowOrder(size, seed).windows(begin, begin + count).tolist() == after.tolist()


@given(size=st.integers(1, 500), batch=st.integers(1, 16), ranks=st.integers(1, 5))
def test_every_validation_window_is_evaluated_once_in_as_many_batches_on_every_rank(size, batch, ranks):
    shares = [list(loader.evaluation_shares(size, batch, rank, ranks)) for rank in range(ranks)]
    assert len({len(share) for share in shares}) == 1
    windows = np.concatenate([part for share in shares for part in share])
    assert sorted(windows.tolist()) == list(range(size))
    assert all(len(part) <= batch for share in shares for part in share)


def test_the_last_target_needs_one_token_more():
    assert [loader.window_count(tokens, 4) for tokens in (0, 1, 4, 5, 8, 9)] == [0, 0, 0, 1, 1, 2]


def test_an_epoch_has_the_tokens_that_the_recipe_says_else_the_corpus():
    assert loader.steps_per_epoch(1000, 64, 32) == 31
    assert loader.steps_per_epoch(1000, 64, 32, epoch_tokens=64 * 320) == 10
    assert loader.steps_per_epoch(1000, 64, 32, epoch_tokens=64 * 32000) == 31
    assert loader.steps_per_epoch(1000, 64, 32, epoch_tokens=1) == 1
