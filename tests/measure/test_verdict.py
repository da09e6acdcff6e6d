"""One verdict from the doubts and the interval of a result."""

import json
from dataclasses import replace

import pytest
from measured_streams import KEY, trials_with

from trainmark.base.typed_json import decode, encode
from trainmark.measure.doubts import SENTENCES, Doubt, DoubtCode, Severity, doubt, doubt_in_trials
from trainmark.measure.result import Reliability, result_verdict, run_verdict, summarize
from trainmark.view.catalogue import translated

STEADY = [99.8, 99.9, 100.0, 100.0, 100.1, 100.4]
BUSY = doubt(DoubtCode.HOST_BUSY, share="30%")
DATA_BOUND = doubt(DoubtCode.DATA_BOUND, wait="4.1%")
THROTTLED = doubt(DoubtCode.THROTTLED, reasons="thermal", throttled=3, samples=9)


def result_with(*doubts, rates=STEADY, key=KEY):
    (result,) = summarize(trials_with(list(rates), key))
    return replace(result, doubts=(*result.doubts, *doubts))


def test_a_result_without_doubts_is_reliable_to_the_farther_bound_of_its_interval():
    verdict = result_verdict(result_with())
    assert verdict.reliability is Reliability.RELIABLE
    assert verdict.within == pytest.approx(0.004)


def test_a_note_leaves_a_figure_reliable():
    assert result_verdict(result_with(DATA_BOUND)).reliability is Reliability.RELIABLE


def test_a_severe_doubt_of_half_of_the_trials_makes_a_figure_unreliable():
    busy, all_doubts = (
        doubt_in_trials(BUSY, 3, 6),
        result_verdict(result_with(THROTTLED, doubt_in_trials(BUSY, 3, 6))),
    )
    assert all_doubts.reliability is Reliability.UNRELIABLE
    assert all_doubts.reasons == (busy,)


def test_a_severe_doubt_of_fewer_trials_asks_for_care():
    verdict = result_verdict(result_with(doubt_in_trials(BUSY, 2, 6)))
    assert verdict.reliability is Reliability.CAUTION
    assert verdict.reasons[0].severity is Severity.CAUTION


def test_too_few_trials_for_an_interval_ask_for_care_and_have_no_width():
    verdict = result_verdict(result_with(rates=STEADY[:5]))
    assert (verdict.reliability, verdict.within) == (Reliability.CAUTION, None)
    assert [reason.code for reason in verdict.reasons] == [DoubtCode.FEW_TRIALS]


def test_a_wide_interval_asks_for_care_without_any_doubt():
    wide = replace(result_with(rates=[90.0, *STEADY[1:]]), doubts=())
    assert result_verdict(wide).reliability is Reliability.CAUTION


def test_a_run_is_as_reliable_as_its_least_reliable_figures():
    eight = replace(KEY, devices_per_node=8)
    results = [
        result_with(),
        result_with(doubt_in_trials(BUSY, 4, 6), key=eight),
        result_with(BUSY, key=eight),
    ]
    verdict = run_verdict(results)
    assert (verdict.reliability, verdict.concerned, verdict.figures) == (Reliability.UNRELIABLE, 2, 3)
    assert verdict.reasons == (BUSY,)


def test_a_run_without_a_result_has_no_figure_to_rely_on():
    assert run_verdict([]).reliability is Reliability.NO_FIGURE


def test_every_doubt_has_a_sentence_and_every_sentence_is_of_a_doubt():
    assert {name.partition("/")[0] for name in SENTENCES} == {code.value for code in DoubtCode}


def test_a_doubt_that_was_stored_is_translated_as_a_new_one():
    fresh = doubt_in_trials(BUSY, 3, 6)
    stored = decode(Doubt, json.loads(json.dumps(encode(fresh))))
    assert stored == fresh
    assert translated(stored.text, "zh") == translated(fresh.message, "zh") != fresh.message


def test_a_doubt_that_another_version_worded_keeps_its_english_and_has_todays_chinese():
    other = replace(BUSY, message="The host was busy.")
    assert other.text == "The host was busy."
    assert translated(other.text, "zh") == translated(BUSY.message, "zh")


def test_a_doubt_whose_sentence_this_version_does_not_have_stays_as_it_is():
    for other in (replace(BUSY, sentence="no-such"), replace(BUSY, values=())):
        assert translated(replace(other, message="The host was busy.").text, "zh") == "The host was busy."
