"""A host that is slower beside the profiler than before: the table is of the measured step, and says so."""

from dataclasses import replace

import pytest
from builders_step import Row, Span, profile_of

from trainmark.explain.analysis import TrialFacts, explain
from trainmark.explain.explanation import MeasuredPeaks
from trainmark.explain.operator_cost import Work
from trainmark.explain.profile_folder import Captured, CapturedRank
from trainmark.view.catalogue import translated

MILLISECOND = 1_000_000
BESIDE, MEASURED = 0.0202, 0.0138


def explained(busy, measured):
    """Explain three steps of 24 ms under the profiler, `busy` ms of each a kernel."""
    begins = [24 * number * MILLISECOND for number in range(3)]
    spans = [Span("k", begin, begin + busy * MILLISECOND, launch=1) for begin in begins]
    profile = replace(profile_of(spans, [24 * number * MILLISECOND for number in (1, 2, 3)]), device="cuda")
    rank = CapturedRank(0, 1, "pytorch", "cuda", None, profile, None, (BESIDE,), (0.024,), {})
    return explain(Captured((rank,)), TrialFacts("case", step_seconds=measured)).explanation


def test_the_table_adds_up_to_the_measured_step_and_a_note_has_both_times():
    explanation = explained(busy=4, measured=MEASURED)
    assert explanation.total / explanation.steps == pytest.approx(MEASURED * 1e9, rel=1e-6)
    assert explanation.overhead == pytest.approx(0.024 / MEASURED - 1)
    (note,) = [note for note in explanation.notes if "host was slower" in note]
    assert "20.20 ms" in note and "13.80 ms" in note
    assert "host" not in translated(note, "zh") and "20.20 ms" in translated(note, "zh")


@pytest.mark.parametrize(("busy", "measured"), [(4, None), (16, MEASURED), (4, 0.0200)])
def test_else_it_adds_up_to_the_steps_beside_it_without_a_note(busy, measured):
    explanation = explained(busy, measured)
    assert explanation.total / explanation.steps == pytest.approx(BESIDE * 1e9, rel=1e-6)
    assert not any("host was slower" in note for note in explanation.notes)


@pytest.mark.parametrize(
    ("own_clock", "what"), [(0.024, "The profile lacks nothing"), (0.040, "What the profile lacks")]
)
def test_a_profile_that_is_too_short_says_whether_it_or_the_steps_beside_it_are_to_blame(own_clock, what):
    spans = [Span("aten::mm", 0, 20 * MILLISECOND, launch=1)]
    profile = replace(profile_of(spans, [24 * MILLISECOND]), device="cpu")
    rank = CapturedRank(0, 1, "jax", "cpu", None, profile, None, (0.080,), (own_clock,), {})
    first = explain(Captured((rank,)), TrialFacts("case")).explanation.notes[0]
    assert first.startswith(what)
    assert "profil" not in translated(first, "zh").replace("--profile-steps", "")


def test_a_class_that_is_faster_than_its_floor_is_noted():
    spans = [Span("aten::mm", 0, 20 * MILLISECOND, launch=1)]
    rows = [Row("aten::mm", 0, 20 * MILLISECOND)]
    profile = replace(profile_of(spans, [24 * MILLISECOND], rows=rows), device="cpu")
    rank = CapturedRank(0, 1, "pytorch", "cpu", None, profile, profile, (0.024,), (0.024,), {})
    work = {"matrix product": Work(flop=4 * 10**10)}
    notes = [
        explain(
            Captured((rank,)), TrialFacts("case", peaks=MeasuredPeaks(flops=peak), work=work)
        ).explanation.notes
        for peak in (1e12, 4e12)
    ]
    faster = [[note for note in step if "faster than its floor" in note] for step in notes]
    assert [len(step) for step in faster] == [1, 0]
    assert "floor" not in translated(faster[0][0], "zh")
