"""What is one step where optimizers take turns."""

from __future__ import annotations

import pytest

from trainmark.events import Step
from trainmark.logs.trials.observed_steps import ObservedStep, join_rounds


def turns(text: str) -> list[ObservedStep]:
    """`A A AB`: a turn a word, an optimizer a letter."""
    return [
        ObservedStep(Step(0, number, float(number), None, None), (), tuple(ord(each) - 65 for each in word))
        for number, word in enumerate(text.split())
    ]


def made_of(text: str) -> list[str]:
    return ["".join(chr(65 + number) for number in step.turn) for step in join_rounds(turns(text))[0]]


@pytest.mark.parametrize(
    "text, steps",
    [
        ("A A A", ["A", "A", "A"]),
        ("A B AB AB", ["AB", "AB", "AB"]),
        ("A A A A A B A A A A AB A A A A AB", ["AAAAAB"] * 3),
        ("A A AB A A AB A A", ["AAAB"] * 2),
        ("A B B B B BA B B B B BA B B B B B", ["AB", "BBBBA", "BBBBBA"]),  # one A, then five B
    ],
)
def test_one_round_of_the_optimizers_is_one_step(text, steps):
    assert made_of(text) == steps
    assert join_rounds(turns(text))[1] is None


def test_the_optimizer_of_the_next_fold_is_no_joint_step():
    assert made_of("A A A B B B C C C") == [*"AAABBBCCC"]
    assert made_of("A B AB AB C D CD CD") == ["AB"] * 3 + ["CD"] * 3


def test_an_optimizer_that_comes_every_tenth_turn_makes_no_round_and_leaves_a_question():
    text = " ".join(["A"] * 9 + ["AB"]) + " " + " ".join((["A"] * 9 + ["AB"]) * 4)
    steps, unequal = join_rounds(turns(text))
    assert len(steps) == 50
    assert unequal == "50 : 5"


def test_turns_without_a_pattern_leave_a_question():
    lengths = [1, 6, 2, 7, 3, 5, 1, 4, 6, 2]
    assert join_rounds(turns(" ".join("A " * length + "AB" for length in lengths)))[1] is not None


def test_the_numbers_and_times_of_steps_are_those_of_their_last_turns():
    steps, _ = join_rounds(turns("A A AB A A AB"))
    assert [(step.event.step, step.event.mono) for step in steps] == [(0, 2.0), (1, 5.0)]
