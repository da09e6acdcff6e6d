import json
from dataclasses import replace
from math import inf, nan

from sample_documents import BUSY, GPU, cpu, h200, hostile, result

from trainmark.pages.run.record import run_json
from trainmark.workloads import registry

RESULT_NAMES = {
    "workload", "framework", "framework_version", "variant", "precision", "loss_scale",
    *registry.axes(),
    "layout", "compiler", "data", "batch_per_device", "nodes", "devices_per_node", "device", "threads",
    "throughput", "speedup", "efficiency", "memory_bytes", "host_memory_bytes", "step_source",
    "sample_source", "pauses", "step_seconds",
    "first_step_seconds", "warmup_steps",
    "data_wait_share", "samples_per_joule", "joules_per_sample", "mfu", "hfu", "conventions", "memory_share",
    "peak_bandwidth", "light_share",
    "trials", "doubts", "verdict", "published",
    "time_shares", "step_parts", "ranks", "stragglers",
    "recipe", "loader", "dataset", "target", "finish", "of_synthetic",
    "settling_steps", "share_of_best", "published_of_framework", "conformance",
    "cost_per_million", "cost_to_target", "kwh_per_million",
}  # fmt: skip


def test_the_names_of_the_contract_are_all_there_and_no_others():
    tree = json.loads(run_json(h200()))
    assert set(tree) == {
        *("run", "verdict", "results", "contrasts", "scaling", "trials", "skipped", "damaged", "environment"),
    }
    assert set(tree["verdict"]) == {"reliability", "sentence", "within", "concerned", "figures", "doubts"}
    assert set(tree["run"]) == {"name", "title", "about", "created", "version", "command", "suite"}
    assert set(tree["results"][0]) == RESULT_NAMES
    assert set(tree["results"][0]["throughput"]) == {"median", "low", "high", "n", "unit", "confidence"}
    assert set(tree["results"][0]["speedup"]) == {"value", "low", "high", "confidence"}
    assert set(tree["results"][0]["step_seconds"]) == {"mean", "p50", "p90", "p99", "longest"}
    assert set(tree["results"][0]["mfu"]) == {"value", "peak_flops", "source", "flops_per_sample"}


def test_figures_pass_through_unrounded():
    document = h200()
    entry = json.loads(run_json(document))["results"][0]
    assert entry["throughput"]["median"] == document.results[0].throughput
    assert entry["throughput"]["unit"] == "images/s"
    assert entry["trials"] == list(document.results[0].trials)


def test_a_missing_baseline_is_null_and_not_one():
    document = replace(h200(), results=(result(GPU, 100.0),))
    entry = json.loads(run_json(document))["results"][0]
    assert entry["speedup"] is None
    assert entry["efficiency"] is None


def test_a_result_of_two_trials_has_null_bounds():
    throughput = json.loads(run_json(cpu()))["results"][0]["throughput"]
    assert (throughput["low"], throughput["high"], throughput["confidence"]) == (None, None, None)


def test_numbers_that_are_not_finite_become_null():
    document = replace(
        h200(),
        results=(result(GPU, 100.0, samples_per_joule=nan),),
        environment={"host": {"load": [inf, 1.0]}},
    )
    text = run_json(document)
    assert "NaN" not in text
    assert "Infinity" not in text
    assert json.loads(text)["environment"]["host"]["load"] == [None, 1.0]


def test_hostile_text_comes_back_as_it_was_and_travels_as_ascii():
    document = hostile()
    text = run_json(document)
    assert text.isascii()
    assert json.loads(text)["trials"][0]["detail"] == document.trials[0].detail


def test_a_doubt_has_its_severity_and_in_how_many_trials_it_is():
    document = replace(h200(), results=(result(GPU, 100.0, doubts=(BUSY,)),))
    tree = json.loads(run_json(document))
    (doubt,) = tree["results"][0]["doubts"]
    assert (doubt["code"], doubt["severity"], doubt["trials"], doubt["of"]) == ("host-busy", "severe", 4, 6)
    assert tree["verdict"]["reliability"] == "unreliable"
    assert tree["verdict"]["sentence"] == "Do not rely on this: the host was busy in 4 of 6 trials."
    assert tree["results"][0]["verdict"] == tree["verdict"]


def test_a_users_own_program_stands_among_no_published_results():
    own = replace(GPU, framework=None, workload="mine")
    document = replace(
        h200(), results=(result(own, 100.0), result(GPU, 90.0)), published={own: None, GPU: None}
    )
    first, second = json.loads(run_json(document))["results"]
    assert first["published"] is None
    assert second["published"].startswith("best published: nothing comparable")
