"""By which of its results a JAX step is timed; JAX itself is not needed."""

from __future__ import annotations

from trainmark.inside.hooks.jax import Results


class Array:
    def __init__(self, size, donated=False):
        self.size, self.donated = size, donated

    def is_deleted(self):
        return self.donated


def step(*results: tuple[int, bool]) -> list[Array]:
    return [Array(size, donated) for size, donated in results]


def test_a_step_is_timed_by_its_smallest_result():
    results, chosen = Results(), []
    for _ in range(2):
        arrays = step((32, False), (1, False))
        chosen.append(results.choose(arrays) is arrays[1])
    assert chosen == [True, True]


def test_a_result_that_the_next_step_takes_as_its_own_times_no_further_step():
    """A counter in the optimizer's state, donated, is gone by the time it is waited for."""
    results, chosen = Results(), []
    for _ in range(3):
        arrays = step((1, True), (32, True), (1, False))
        chosen.append(arrays.index(results.choose(arrays)))
    assert chosen == [0, 2, 2]


def test_where_all_results_are_donated_the_smallest_has_to_do():
    results, chosen = Results(), []
    for _ in range(4):
        arrays = step((8, True), (1, True))
        chosen.append(arrays.index(results.choose(arrays)))
    assert chosen == [1, 0, 1, 1]
