"""Contributions of the difference of two explanations."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainmark.base.errors import UserError
from trainmark.explain.difference import difference
from trainmark.explain.explanation import (
    Agreement,
    ClassTime,
    ExplainedSubject,
    Explanation,
    IdleTime,
    Kernel,
    Overlap,
)
from trainmark.measure.figure import Interval, Ratio

NAMES = ("convolution", "matrix product", "attention", "elementwise", "optimiser", "other")
CAUSES = ("launch", "synchronisation", "loader")


def explanation(classes, idle=(), overlaps=(), steps=5, measured=None, samples=64.0, **changes):
    """An explanation whose parts are given in nanoseconds over all its steps."""
    classes = tuple(ClassTime(name, time, time, 1) for name, time in dict(classes).items())
    overlaps = tuple(Overlap(names, time) for names, time in dict(overlaps).items())
    idle = tuple(IdleTime(cause, time, 1) for cause, time in dict(idle).items())
    total = sum(part.alone for part in classes) + sum(part.nanoseconds for part in (*overlaps, *idle))
    agreement = Agreement(total / steps / 1e9, measured)
    subject = ExplainedSubject("a run", samples=samples)
    made = Explanation(subject, steps, total, agreement, classes=classes, overlaps=overlaps, idle=idle)
    return replace(made, **changes)


times = st.integers(1, 10**11)
explanations = st.builds(
    explanation,
    st.dictionaries(st.sampled_from(NAMES), times, min_size=1),
    st.dictionaries(st.sampled_from(CAUSES), times),
    st.dictionaries(st.sampled_from([NAMES[:2], NAMES[1:3]]), times),
    steps=st.integers(1, 20),
    measured=st.none() | st.floats(1e-6, 100.0),
    samples=st.none() | st.integers(1, 10**6).map(float),
)


@given(explanations, explanations)
def test_contributions_add_up_to_the_difference_exactly(a, b):
    result = difference(a, b)
    assert sum(row.seconds_a for row in result.contributions) == result.seconds_a
    assert sum(row.seconds_b for row in result.contributions) == result.seconds_b
    assert sum(row.change for row in result.contributions) == result.seconds_b - result.seconds_a


@given(explanations, explanations)
def test_the_two_sums_are_the_steps_timed_without_the_profiler(a, b):
    result = difference(a, b)
    for side, seconds in ((a, result.seconds_a), (b, result.seconds_b)):
        samples = side.subject.samples if result.per == "sample" else 1
        rows = sum(abs(row.seconds_a) + abs(row.seconds_b) for row in result.contributions)
        assert seconds == pytest.approx(side.step_seconds / samples, abs=1e-12 * rows)


@given(explanations, explanations)
def test_the_way_back_is_the_same_with_the_sign_turned(a, b):
    there, back = difference(a, b), difference(b, a)
    changes = {(row.kind, row.name): row.change for row in there.contributions}
    assert {(row.kind, row.name): -row.change for row in back.contributions} == changes


@given(explanations)
def test_a_run_does_not_differ_from_itself(a):
    assert all(row.change == 0 for row in difference(a, a).contributions)


@given(explanations, explanations)
def test_the_largest_change_comes_first(a, b):
    changes = [abs(row.change) for row in difference(a, b).contributions]
    assert changes == sorted(changes, reverse=True)


def test_classes_that_fuse_into_another_show_as_both_their_changes():
    eager = explanation({"elementwise": 30_000_000, "matrix product": 50_000_000}, {"launch": 20_000_000})
    compiled = explanation({"matrix product": 50_000_000, "reduction": 10_000_000})
    rows = {row.name: row.change * 1e3 for row in difference(eager, compiled).contributions}
    assert rows == pytest.approx({"elementwise": -6, "launch": -4, "reduction": 2, "matrix product": 0})


def test_what_the_profiler_does_not_explain_is_the_rest():
    a = explanation({"other": 50_000_000}, measured=0.0099)
    b = explanation({"other": 40_000_000}, measured=0.0081)
    (rest,) = (row for row in difference(a, b).contributions if row.kind == "rest")
    assert (rest.seconds_a, rest.seconds_b) == pytest.approx((-0.0001, 0.0001))


def test_other_batches_are_compared_by_the_sample():
    a, b = (explanation({"other": 10**9}, samples=samples, steps=1) for samples in (10.0, 20.0))
    result = difference(a, b)
    assert result.per == "sample"
    assert (result.seconds_a, result.seconds_b) == pytest.approx((0.1, 0.05))


def test_without_one_of_the_batches_times_are_of_a_step_and_a_note_says_so():
    result = difference(explanation({"other": 9}), explanation({"other": 9}, samples=None))
    assert result.per == "step"
    assert "The batch of B is not known: times are of a step, whatever its size." in result.notes


@pytest.mark.parametrize("refused", ["A", "B"])
def test_a_side_whose_shares_are_refused_is_refused_by_name(refused):
    whole = explanation({"other": 9})
    broken = replace(whole, agreement=Agreement(1.0, 0.5, "The profiled step takes 100 % longer."))
    sides = (broken, whole) if refused == "A" else (whole, broken)
    with pytest.raises(UserError, match=rf"^{refused} \(a run\) has no shares to compare: The profiled step"):
        difference(*sides)


def test_parts_that_do_not_make_up_the_step_are_refused():
    with pytest.raises(UserError, match=r"B \(a run\) holds no whole step"):
        difference(explanation({"other": 9}), explanation({"other": 9}, total=10))


def test_images_and_tokens_are_not_compared():
    tokens = explanation({"other": 9}, subject=ExplainedSubject("b", unit="tokens"))
    with pytest.raises(UserError, match="A counts samples and B tokens"):
        difference(explanation({"other": 9}), tokens)


def with_kernels(name, *kernels):
    side = explanation({name: 10**7})
    return replace(side, classes=(replace(side.classes[0], kernels=kernels),))


def test_kernels_of_one_side_alone_are_named_by_class():
    a = with_kernels("attention", Kernel("softmax", 6 * 10**6, 5), Kernel("gemm", 4 * 10**6, 5))
    b = with_kernels("attention", Kernel("flash_fwd", 6 * 10**6, 5), Kernel("gemm", 4 * 10**6, 5))
    notes = difference(a, b).notes
    assert notes == ("Only in A, attention: softmax 1.2 ms.", "Only in B, attention: flash_fwd 1.2 ms.")


def test_of_many_new_kernels_the_five_longest_are_named():
    kernels = [Kernel(f"fused_{index}", 10**6 + index, 1) for index in range(9)]
    notes = difference(with_kernels("other", Kernel("x", 10**7, 1)), with_kernels("other", *kernels)).notes
    assert [f"fused_{index} " in notes[-1] for index in range(9)] == [False] * 4 + [True] * 5


@pytest.mark.parametrize(("low", "words"), [(1.9, "inside that"), (2.05, "outside of that")])
def test_the_measured_ratio_is_beside_what_the_steps_give(low, words):
    a, b = explanation({"other": 2 * 10**7}), explanation({"other": 10**7})
    measured = Ratio(2.1, Interval(low, 2.2, 0.95))
    result = difference(a, b, measured)
    assert result.measured is measured
    assert f"give ×2, {words} interval" in result.notes[0]
