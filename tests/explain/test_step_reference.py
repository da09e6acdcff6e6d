"""A host that is slower beside the profiler than before: the table is of the measured step, and says so."""

from dataclasses import replace

import pytest
from builders_step import Span, profile_of

from trainmark.explain.explain import TrialFacts, explain
from trainmark.explain.profile.folder import Captured, CapturedRank
from trainmark.report.explain.language.chinese import sentence

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
    assert "host" not in sentence(note, "zh") and "20.20 ms" in sentence(note, "zh")


@pytest.mark.parametrize(("busy", "measured"), [(4, None), (16, MEASURED), (4, 0.0200)])
def test_else_it_adds_up_to_the_steps_beside_it_without_a_note(busy, measured):
    explanation = explained(busy, measured)
    assert explanation.total / explanation.steps == pytest.approx(BESIDE * 1e9, rel=1e-6)
    assert not any("host was slower" in note for note in explanation.notes)
