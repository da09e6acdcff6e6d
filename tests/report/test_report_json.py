import json
from dataclasses import replace
from math import inf, nan

from sample_documents import GPU, cpu, h200, hostile, result

from trainmark.report.render import json_report

RESULT_NAMES = {
    "workload", "framework", "framework_version", "variant", "image_size", "precision", "loss_scale",
    "layout", "compiler", "data", "batch_per_device", "nodes", "devices_per_node", "device", "threads",
    "throughput", "speedup", "efficiency", "memory_bytes", "host_memory_bytes", "step_seconds",
    "first_step_seconds", "warmup_steps",
    "data_wait_share", "samples_per_joule", "mfu", "memory_share",
    "peak_bandwidth", "light_share",
    "trials", "doubts", "published",
    "time_shares", "step_parts", "ranks", "stragglers",
    "recipe", "loader", "dataset", "target", "finish", "of_synthetic",
    "settling_steps", "share_of_best", "published_of_framework", "conformance",
    "cost_per_million", "cost_to_target", "kwh_per_million",
}  # fmt: skip


def test_the_names_of_the_contract_are_all_there_and_no_others():
    tree = json.loads(json_report.render(h200()))
    assert set(tree) == {"run", "results", "scaling", "trials", "skipped", "damaged", "environment"}
    assert set(tree["run"]) == {"name", "title", "about", "created", "version", "command", "suite"}
    assert set(tree["results"][0]) == RESULT_NAMES
    assert set(tree["results"][0]["throughput"]) == {"median", "low", "high", "n", "unit", "confidence"}
    assert set(tree["results"][0]["speedup"]) == {"value", "low", "high", "confidence"}
    assert set(tree["results"][0]["step_seconds"]) == {"mean", "p50", "p90", "p99", "longest"}
    assert set(tree["results"][0]["mfu"]) == {"value", "peak_flops", "source"}


def test_figures_pass_through_unrounded():
    document = h200()
    entry = json.loads(json_report.render(document))["results"][0]
    assert entry["throughput"]["median"] == document.results[0].throughput
    assert entry["throughput"]["unit"] == "images/s"
    assert entry["trials"] == list(document.results[0].trials)


def test_a_missing_baseline_is_null_and_not_one():
    document = replace(h200(), results=(result(GPU, 100.0),))
    entry = json.loads(json_report.render(document))["results"][0]
    assert entry["speedup"] is None
    assert entry["efficiency"] is None


def test_a_result_of_two_trials_has_null_bounds():
    throughput = json.loads(json_report.render(cpu()))["results"][0]["throughput"]
    assert (throughput["low"], throughput["high"], throughput["confidence"]) == (None, None, None)


def test_numbers_that_are_not_finite_become_null():
    document = replace(
        h200(),
        results=(result(GPU, 100.0, samples_per_joule=nan),),
        environment={"host": {"load": [inf, 1.0]}},
    )
    text = json_report.render(document)
    assert "NaN" not in text
    assert "Infinity" not in text
    assert json.loads(text)["environment"]["host"]["load"] == [None, 1.0]


def test_hostile_text_comes_back_as_it_was_and_travels_as_ascii():
    document = hostile()
    text = json_report.render(document)
    assert text.isascii()
    assert json.loads(text)["trials"][0]["detail"] == document.trials[0].detail
