from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from measured_streams import trials_with

from trainmark.measure.figure import Result, TrialFigure
from trainmark.measure.result import summarise
from trainmark.measure.serial import figure_from_dict, figure_to_dict, result_from_dict, result_to_dict

st.register_type_strategy(float, st.floats(allow_nan=False, allow_infinity=False))


@given(st.builds(TrialFigure))
def test_a_figure_comes_back_from_json_as_it_was(figure):
    assert figure_from_dict(json.loads(json.dumps(figure_to_dict(figure)))) == figure


@given(st.builds(Result))
def test_a_result_comes_back_from_json_as_it_was(result):
    assert result_from_dict(json.loads(json.dumps(result_to_dict(result)))) == result


def test_a_figure_of_an_earlier_version_is_read_without_what_that_did_not_know():
    plain = figure_to_dict(trials_with([100.0])[0].figure)
    del plain["settling_steps"]
    assert figure_from_dict(plain).settling_steps is None


def test_a_figure_without_its_throughput_is_refused():
    plain = figure_to_dict(trials_with([100.0])[0].figure)
    del plain["throughput"]
    with pytest.raises(KeyError, match="throughput"):
        figure_from_dict(plain)


def test_enums_are_kept_by_their_stable_names():
    (result,) = summarise(trials_with([100.0]))
    assert result_to_dict(result)["doubts"][0]["code"] == "few-trials"
