from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from measured_streams import trials_with

from trainmark.base.typed_json import DecodeError, decode, encode
from trainmark.measure.figure import Result, TrialFigure
from trainmark.measure.key import Key
from trainmark.measure.result import summarize

st.register_type_strategy(float, st.floats(allow_nan=False, allow_infinity=False))
st.register_type_strategy(int, st.integers(-(2**63), 2**63 - 1))

# Axes are declared: each has a name of its own, and none that of a field.
AXES = st.dictionaries(st.sampled_from(["image_size", "length", "size"]), st.integers(1, 9) | st.text())
KEYS = st.builds(Key, axes=AXES.map(lambda axes: tuple(axes.items())))
st.register_type_strategy(Key, KEYS)


@given(st.builds(TrialFigure))
def test_a_figure_comes_back_from_json_as_it_was(figure):
    assert decode(TrialFigure, json.loads(json.dumps(encode(figure)))) == figure


@given(st.builds(Result))
def test_a_result_comes_back_from_json_as_it_was(result):
    assert decode(Result, json.loads(json.dumps(encode(result)))) == result


def test_a_figure_of_an_earlier_version_is_read_without_what_that_did_not_know():
    plain = encode(trials_with([100.0])[0].figure)
    del plain["settling_steps"]
    assert decode(TrialFigure, plain).settling_steps is None


def test_a_figure_without_its_throughput_is_refused():
    plain = encode(trials_with([100.0])[0].figure)
    del plain["throughput"]
    with pytest.raises(DecodeError, match="throughput"):
        decode(TrialFigure, plain)


def test_enums_are_kept_by_their_stable_names():
    (result,) = summarize(trials_with([100.0]))
    assert encode(result)["doubts"][0]["code"] == "few-trials"
