"""Who talks to whom: nobody to two at once, and every link that is wanted once."""

from __future__ import annotations

from itertools import chain, combinations

from hypothesis import given
from hypothesis import strategies as st

from trainmark.workloads.fabric.schedule import leaders, neighbours, rounds, tournament


@given(st.integers(2, 40))
def test_in_a_tournament_everybody_meets_everybody_once(count):
    assert sorted(chain(*tournament(range(count)))) == list(combinations(range(count), 2))


@given(st.integers(2, 40))
def test_a_tournament_has_as_few_rounds_as_can_be(count):
    assert len(list(tournament(range(count)))) == count - 1 + count % 2


@given(st.lists(st.sampled_from("abcdef"), min_size=2, max_size=60), st.booleans())
def test_no_rank_has_two_partners_in_a_round(nodes, together):
    for pairs in rounds(nodes, together):
        assert len({rank for pair in pairs for rank in pair}) == 2 * len(pairs)


@given(st.lists(st.sampled_from("abcdef"), min_size=2, max_size=60))
def test_alone_and_together_measure_the_same_links(nodes):
    alone, together = (sorted(chain(*rounds(nodes, mode))) for mode in (False, True))
    assert alone == together
    assert len(set(alone)) == len(alone)


def test_alone_means_one_pair_at_a_time():
    assert all(len(pairs) == 1 for pairs in rounds(["a", "a", "b", "b"], together=False))


def test_of_many_ranks_the_first_of_each_node_meet_and_neighbours_inside():
    nodes = [name for name in "abcde" for _ in range(4)]
    pairs = set(chain(*rounds(nodes, together=True)))
    between = set(combinations([0, 4, 8, 12, 16], 2))
    inside = {(rank, rank + 1) for rank in range(19) if rank % 4 != 3}
    assert pairs == between | inside


def test_ranks_that_are_dealt_out_by_turns_are_still_neighbours_on_their_node():
    nodes = ["a", "b"] * 3
    assert leaders(nodes) == [0, 1]
    assert sorted(chain(*neighbours(nodes))) == [(0, 2), (1, 3), (2, 4), (3, 5)]
