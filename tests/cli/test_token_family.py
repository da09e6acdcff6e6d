"""A family that counts tokens, from its run to every place that shows a figure of it."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from trainmark.workloads.gpt2.shared import SIZES
from trainmark.workloads.transformers import flops

DECODER = Path(__file__).with_name("decoder")
SHAPE = SIZES["mini"]
SUITE = """
workload: ./decoder
framework: plain
topology: [1n1g, 1n2g]
batch_per_device: 8
recompute: [none, blocks]
device: cpu
repeats: 1
warmup: {steps: 2}
measure: {steps: 20}
"""


@pytest.fixture(scope="module")
def ran(tmp_path_factory) -> Path:
    """One run that all tests look at."""
    folder = tmp_path_factory.mktemp("tokens")
    shutil.copytree(DECODER, folder / "decoder", ignore=shutil.ignore_patterns("__pycache__"))
    (folder / "suite.yaml").write_text(SUITE)
    command = [sys.executable, "-m", "trainmark", "run", "suite.yaml", "--name", "a"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return folder


@pytest.fixture
def results(trainmark, ran):
    done = trainmark("report", "a", "--runs", str(ran / "runs"), "--format", "json")
    return {(r["devices_per_node"], r["recompute"]): r for r in json.loads(done.out)["results"]}


def test_hfu_counts_the_blocks_forward_pass_once_more_and_mfu_does_not(results):
    plain, recomputed = results[1, "none"], results[1, "blocks"]
    exact = flops.sample_flops(SHAPE, 64)
    assert plain["mfu"]["flops_per_sample"] == recomputed["mfu"]["flops_per_sample"] == exact
    assert plain["hfu"]["value"] == plain["mfu"]["value"]
    more = 2 * SHAPE.layers * flops.block_work(SHAPE, 64) / 64
    ratio = recomputed["hfu"]["value"] / recomputed["mfu"]["value"]
    assert ratio == pytest.approx(1 + more / exact)


def test_conventions_follow_from_the_rate_and_the_peak_of_their_own_or_the_measured_one(results):
    result = results[2, "none"]
    rate = result["throughput"]["median"]
    assert result["throughput"]["unit"] == "tokens/s" and result["mfu"]["peak_flops"] == 2e13
    by_name = {each["name"]: each for each in result["conventions"]}
    assert list(by_name) == ["nanoGPT", "llm.c", "Megatron-LM", "torchtitan", "MaxText", "llm-foundry"]
    for name, peak, source in [("nanoGPT", 2 * 312e12, "written-in"), ("torchtitan", 2e13, "measured")]:
        convention = by_name[name]
        assert (convention["peak_flops"], convention["source"]) == (peak, source)
        assert convention["value"] == pytest.approx(convention["flops_per_sample"] * rate / peak)


@pytest.mark.parametrize("kind", ["md", "html"])
def test_the_pages_have_what_other_codes_would_call_the_mfu(trainmark, ran, kind):
    page = trainmark("report", "a", "--runs", str(ran / "runs"), "--format", kind).out
    section = page.partition("What other codes would call the MFU of this run")[2]
    for words in ("nanoGPT", "torchtitan", "GFLOP a token", "exact"):
        assert words in section
    assert "tokens/s" in page and "of the memory roofline" in page


def test_the_terminal_has_them_under_the_results(trainmark, ran):
    shown = trainmark("show", "a", "--runs", str(ran / "runs")).out
    assert "What other codes would call" in shown and "GFLOP a token" in shown


def test_a_trial_tells_them_by_name(trainmark, ran):
    trial = trainmark("show", "a", "decoder-plain-fp32-b8-1n1g/01", "--runs", str(ran / "runs")).out
    assert "nanoGPT=" in trial and "hfu" in trial


def test_the_index_has_them(trainmark, ran):
    sql = "SELECT hfu > 0 AS hfu, conventions FROM trials WHERE recompute = 'none' LIMIT 1"
    (row,) = json.loads(trainmark("query", sql, "--runs", str(ran / "runs"), "--json").out)
    assert row["hfu"] is True and "llm.c=" in row["conventions"]


def test_a_comparison_has_both_sides_of_each(trainmark, ran):
    words = ("compare", "a", "a", "--runs", str(ran / "runs"))
    (row, *_) = json.loads(trainmark(*words, "--json").out)["rows"]
    assert row["conventions_before"] == row["conventions_after"] != {}
    assert row["mfu_before"] == row["mfu_after"]
    for kind in ("text", "md", "html"):
        assert " → " in trainmark(*words, "--format", kind).out


def test_a_forecast_starts_from_tokens(trainmark, ran, results):
    words = ("forecast", "a", "--runs", str(ran / "runs"), "--to", "1n4g", "--model", str(ran / "decoder"))
    (first, *_) = json.loads(trainmark(*words, "--json").out)
    measured = results[1, "none"]["throughput"]["median"]
    assert first["unit"] == "tokens/s" and first["measured"]["1n1g"] == pytest.approx(measured)
    assert first["forecasts"][0]["throughput"] == pytest.approx(4 * measured, rel=0.5)


def test_the_estimate_counts_the_tokens_of_a_step(ran):
    from trainmark.runner.prepare import CORE_FLOPS, START_SECONDS, trial_seconds
    from trainmark.suite.load import load

    suite = load(str(ran / "suite.yaml"))
    case = next(case for case in suite.cases if dict(case.axes)["recompute"] == "none")
    tokens = 8 * 64 * case.rules.steps
    expected = (
        flops.sample_flops(SHAPE, 64) * tokens / (CORE_FLOPS * (case.threads or case.fair_threads or 1))
    )
    assert trial_seconds(case, {}) == pytest.approx(START_SECONDS + expected)


FIT = ("--framework", "plain", "--python", sys.executable, "--device", "cpu")


@pytest.fixture
def fit(trainmark, ran, tmp_path, monkeypatch):
    monkeypatch.setenv("TRAINMARK_HOME", str(tmp_path / "home"))
    return lambda *words: trainmark("fit", "--workload", str(ran / "decoder"), *FIT, *words)


def test_the_longest_sequence_is_searched_at_a_batch(fit):
    done = fit("--search", "length", "--batch", "4", "--cap", "900MB", "--json")
    (record,) = json.loads(done.out)["fits"]
    assert (record["search"], record["batch"], record["largest"], record["does_not_fit"]) == (
        *("length", 4, 192, 256),
    )
    assert "length" not in record and record["per_image"] == 4 << 20


def test_a_length_that_the_program_refuses_ends_the_search_with_its_reason(fit):
    done = fit("--search", "length", "--cap", "900MB")
    assert done.code == 0, done.err
    assert "The program refuses length 384: a sequence of 384 is longer than the 320 positions." in done.out
    assert "per length" in done.out


def test_a_quiet_axis_is_named_only_where_it_is_not_at_its_default(fit):
    usual, other = ("--most", "64", "--cap", "900MB"), ("--axis", "accumulate=2")
    assert "accumulate" not in fit("--search", "length", *usual).out
    assert "accumulate 2" in fit("--search", "length", *usual, *other).out


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--search", "recompute"], "--search 'recompute' is nothing to search in decoder: it takes length."),
        (["--search", "width"], "--search 'width' is nothing to search in decoder: it takes length."),
        (["--batch", "4"], "--batch goes with --search"),
        (["--search", "length", "--axis", "length=64"], "--search length tries values of length"),
    ],
)
def test_a_search_that_makes_no_sense_is_refused_in_a_sentence(fit, words, sentence):
    done = fit(*words, "--cap", "900MB")
    assert (done.code, done.err.count("\n")) == (2, 1)
    assert sentence in done.err
