"""JUnit XML: what a CI system shows of a run."""

from __future__ import annotations

from xml.etree import ElementTree

import pytest
from exported_runs import run_with_events
from fabricated_runs import BUSY, fabricate, fabricate_program

CASE = "pytorch-fp32-b32-1n1g"
STEADY = [100.0, 101.0, 102.0, 99.0, 100.5, 101.5]


@pytest.fixture
def suite(trainmark, tmp_path):
    """Exports a run and gives its test suite."""

    def exported(*words: str) -> ElementTree.Element:
        code, _, err = trainmark("export", *words, "--to", "junit", "--out", "out", "--force")
        assert (code, err) == (0, "")
        root = ElementTree.parse(tmp_path / "out" / "junit.xml").getroot()
        assert root.tag == "testsuites"
        return root[0]

    return exported


def test_every_case_is_a_test_case_and_failed_trials_fail_it(suite, run):
    tests = suite("mine")
    names = [(case.get("classname"), case.get("name")) for case in tests]
    assert names == [("quick", CASE), ("quick", "pytorch-fp32-b32-1n8g")]
    assert (tests.get("tests"), tests.get("failures"), tests.get("time")) == ("2", "1", "62.500")
    (failure,) = tests.iter("failure")
    assert failure.get("type") == "crashed"
    assert failure.get("message").startswith("1 of 2 trials failed: rank 0 left with code 1")
    assert failure.text.startswith("02 crashed: rank 0 left")
    assert (
        tests[0]
        .find("system-out")
        .text.startswith("101.0 images/s [100.0, 102.0] (75.0 %) n=3\n! few-trials")
    )


def test_what_was_skipped_is_skipped_there_too(suite, tmp_path):
    fabricate(tmp_path / "runs", "mine", skipped=[("big", "needs 8 devices")])
    tests = suite("mine")
    assert (tests.get("tests"), tests.get("skipped"), tests.get("failures")) == ("2", "1", "0")
    assert tests[1].find("skipped").get("message") == "needs 8 devices"


@pytest.mark.parametrize(
    ("factor", "fail_below", "failures"),
    [(0.9, "0.97", 1), (0.9, "0.5", 0), (1.0, "0.97", 0), (1.1, "0.97", 0)],
)
def test_a_certain_regression_against_the_baseline_fails_its_case(
    suite, tmp_path, factor, fail_below, failures
):
    run_with_events(tmp_path / "runs", "main", {"1n1g": STEADY})
    run_with_events(tmp_path / "runs", "change", {"1n1g": [factor * rate for rate in STEADY]})
    tests = suite("change", "--baseline", "main", "--fail-below", fail_below)
    failing = list(tests.iter("failure"))
    assert [failure.get("type") for failure in failing] == ["regression"] * failures
    if failing:
        assert failing[0].get("message").startswith("×0.900 [0.8")
        assert "90.68 instead of 100.8 images/s" in failing[0].get("message")


def test_a_regression_that_cannot_be_judged_is_skipped_with_its_doubts(suite, tmp_path):
    for name, factor in (("main", 1.0), ("change", 0.5)):
        rates = [factor * rate for rate in STEADY]
        fabricate_program(tmp_path / "runs", name, "python train.py", rates, (BUSY,))
    tests = suite("change", "--baseline", "main", "--fail-below", "0.97")
    assert (tests.get("failures"), tests.get("skipped")) == ("0", "1")
    message = tests[0].find("skipped").get("message")
    assert message.startswith("cannot be judged: ×0.500") and "the host was busy in 6 of 6 trials" in message
    values = {one.get("name"): one.get("value") for one in tests[0].iter("property")}
    assert values["doubts"] == "host-busy" and values["verdict"].startswith("Do not rely on this")


def test_a_baseline_goes_with_junit_alone_and_must_be_there(trainmark, run):
    assert "--baseline goes with --to junit" in trainmark("export", "--to", "csv", "--baseline", "mine")[2]
    assert "there is no run 'gone'" in trainmark("export", "--to", "junit", "--baseline", "gone")[2]


def test_text_that_no_xml_may_hold_is_written_as_escapes(suite, tmp_path):
    fabricate(tmp_path / "runs", "mine", skipped=[("big", "needs \x1b[31m <8> & \ud800 more")])
    assert suite("mine")[1].find("skipped").get("message") == r"needs \x1b[31m <8> & \ud800 more"
