"""Times, widths, shares and topologies, as people write them."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trainmark.suite.model import CaseRules, Topology, parse_topology, powers_of_two
from trainmark.suite.values import duration, loss_scale, relative_width, share, string_map


@pytest.mark.parametrize(
    ("written", "seconds"),
    [(90, 90), (0.5, 0.5), ("90s", 90), ("30m", 1800), ("2h", 7200), ("1.5h", 5400), (" 10 s ", 10)],
)
def test_a_time_is_read_in_seconds(written, seconds):
    assert duration(written) == seconds


@pytest.mark.parametrize(
    "written", [0, -1, "0s", "-5s", "5", "5d", "s", True, None, [], float("nan"), "1e3s"]
)
def test_what_is_no_time_is_refused(written):
    with pytest.raises(ValueError, match="takes a time such as"):
        duration(written)


@settings(deadline=None)
@given(st.floats(0.001, 99.9))
def test_a_relative_width_is_read_as_a_share(percent):
    assert relative_width(f"±{percent:.3f}%") == pytest.approx(round(percent, 3) / 100)


@pytest.mark.parametrize("written", [0.5, "0.5", "±0%", "100%", "-1%", "±%", None, True])
def test_what_is_no_relative_width_is_refused(written):
    with pytest.raises(ValueError, match="takes a width such as"):
        relative_width(written)


@pytest.mark.parametrize(("written", "read"), [(0.761, 0.761), ("76.1%", 0.761), (1, 1.0), ("100%", 1.0)])
def test_a_share_is_read_from_a_number_or_a_percentage(written, read):
    assert share(written) == pytest.approx(read)


@pytest.mark.parametrize("written", [0, 1.01, 76.1, "101%", "0%", -0.1, True, None])
def test_what_is_no_share_is_refused(written):
    with pytest.raises(ValueError, match="takes a share such as"):
        share(written)


@pytest.mark.parametrize("written", ["0n8g", "1n0g", "8g", "1n8", "1n8g1", "n8g"])
def test_what_is_no_topology_is_refused(written):
    with pytest.raises(ValueError, match="is not a topology"):
        parse_topology(written)


def test_powers_of_two_end_with_all_there_is_though_it_is_none():
    written = [str(each) for each in powers_of_two(Topology(3, 6))]
    assert written == ["1n1g", "1n2g", "1n4g", "1n6g", "2n6g", "3n6g"]


def test_the_devices_of_a_topology_are_those_of_all_nodes():
    assert parse_topology("2n8g").devices == 16


def test_a_trial_runs_its_warmup_and_the_steps_that_are_measured():
    assert CaseRules(warmup_steps=20, measure_steps=100).steps == 120


@pytest.mark.parametrize(
    ("written", "text"), [("dynamic", "dynamic"), (128, "128"), (128.0, "128"), (0.5, "0.5")]
)
def test_a_loss_scale_is_kept_as_text_that_names_it(written, text):
    assert loss_scale(written) == text


def test_numbers_in_an_environment_become_the_text_that_a_program_sees():
    assert string_map({"OMP_NUM_THREADS": 4, "RATIO": 0.5, "KIND": "x"}) == {
        "OMP_NUM_THREADS": "4",
        "RATIO": "0.5",
        "KIND": "x",
    }
