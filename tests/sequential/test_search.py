"""Bisection of an ordered list: the culprit, what is left after skips, and the error that is spent."""

from __future__ import annotations

import math
import random

import pytest

from trainmark.measure.bisection import BisectionSearch, ChangeSide, decision_error, place_after


def searched(length: int, culprit: int, broken: frozenset[int] = frozenset()) -> tuple[BisectionSearch, int]:
    """Search with exact answers; return the end and the number of questions."""
    search, questions = BisectionSearch(length), 0
    while (item := search.next_item) is not None:
        questions += 1
        side = (
            ChangeSide.SKIPPED if item in broken else ChangeSide.BAD if item >= culprit else ChangeSide.GOOD
        )
        search = search.answered(item, side)
    return search, questions


def test_every_culprit_of_every_length_is_named_in_the_fewest_questions():
    for length in range(2, 40):
        for culprit in range(1, length):
            search, questions = searched(length, culprit)
            assert list(search.suspects) == [culprit]
            assert questions <= math.ceil(math.log2(length - 1))


def test_what_cannot_be_judged_beside_the_culprit_stays_a_suspect():
    search, _ = searched(16, culprit=9, broken=frozenset({8, 9}))
    assert list(search.suspects) == [8, 9, 10]


def test_a_skipped_item_elsewhere_costs_no_suspect():
    assert list(searched(16, culprit=3, broken=frozenset({8, 12}))[0].suspects) == [3]


def test_a_block_of_broken_items_in_the_middle_is_left_at_once():
    broken = frozenset(range(30, 70))
    for culprit in (5, 29, 71, 99):
        search, questions = searched(101, culprit, broken)
        assert culprit in search.suspects
        assert questions <= 15


def test_if_all_between_is_broken_all_of_it_is_suspect():
    search, questions = searched(6, culprit=3, broken=frozenset({1, 2, 3, 4}))
    assert list(search.suspects) == [1, 2, 3, 4, 5]
    assert questions == 4


def test_each_skip_moves_the_next_question_towards_an_end():
    assert [place_after(skips) for skips in range(6)] == [0.5, 0.25, 0.75, 0.125, 0.875, 0.0625]


def test_the_decisions_of_a_search_never_spend_more_than_the_budget():
    draw = random.Random(1)
    for _ in range(200):
        length = draw.randrange(2, 200)
        culprit, search, spent = draw.randrange(1, length), BisectionSearch(length), 0.0
        while (item := search.next_item) is not None:
            error = decision_error(0.05 - spent, search.decisions_left)
            assert error > 0
            if draw.random() < 0.3:
                search = search.answered(item, ChangeSide.SKIPPED)
                continue
            spent += error
            search = search.answered(item, ChangeSide.BAD if item >= culprit else ChangeSide.GOOD)
        assert spent <= 0.05 + 1e-12


def test_a_list_without_two_ends_is_refused():
    with pytest.raises(ValueError, match="a good and a bad item"):
        BisectionSearch(1)
