"""The family in examples/friedman through every command, with nothing of it under src."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

import pytest

EXAMPLE = Path(__file__).parents[2] / "examples" / "friedman"
PYTHON = ("--set", f"python={sys.executable}")
STEPS = ("--set", "warmup.steps=5", "--set", "measure.steps=30")
# With its threads set, the case on one rank is the same beside a case on two ranks and without one.
SHORT = ("--repeats", "1", *STEPS, "--set", "threads=1", *PYTHON)
FAMILY = ("--workload", "./examples/friedman", "--python", sys.executable)


@pytest.fixture
def folder(tmp_path) -> Path:
    shutil.copytree(EXAMPLE, tmp_path / "examples" / "friedman", ignore=shutil.ignore_patterns("__pycache__"))
    return tmp_path


def test_it_is_run_on_two_ranks_conformed_reported_forecast_and_compared(trainmark, folder):
    verdict = trainmark("conform", "pytorch", *FAMILY, "--json")
    assert verdict.code == 0, verdict.err
    (record,) = json.loads(verdict.out)
    assert [(check["ranks"], check["differs"]) for check in record["checks"]] == [(1, []), (2, [])]

    # The second run is for the comparison only: one of the two cases is enough.
    for name, topology in (("a", "1n1g,1n2g"), ("b", "1n1g")):
        words = ("--set", "width=64", *SHORT, "--topology", topology, "--name", name)
        done = trainmark("run", "examples/friedman/suite.yaml", *words)
        assert done.code == 0, done.err
    assert " rows/s" in done.out

    reported = trainmark("report", "a", "--format", "json")
    assert reported.code == 0, reported.err
    results = json.loads(reported.out)["results"]
    assert [(r["width"], r["devices_per_node"], len(r["trials"])) for r in results] == [
        (64, 1, 1),
        (64, 2, 1),
    ]
    assert all(result["conformance"]["conformant"] for result in results)
    assert results[1]["speedup"] is not None

    words = ("--to", "1n4g,2n4g", "--bandwidth", "1e9", "--model", "./examples/friedman", "--json")
    forecast = trainmark("forecast", "a", *words)
    assert forecast.code == 0, forecast.err
    assert "2n4g" in forecast.out

    compared = trainmark("compare", "a", "b", "--json")
    assert compared.code == 0, compared.err
    rows = json.loads(compared.out)["rows"]
    assert [(row["before"] > 0, row["after"] > 0) for row in rows] == [(True, True)]
    page = trainmark("report", "a", "--format", "html", "--out", "a.html")
    assert page.code == 0 and "friedman" in (folder / "a.html").read_text()


def test_it_is_trained_to_a_finish_line_where_less_is_better(trainmark, folder):
    words = ("--set", "width=64", "--topology", "1n1g", "--repeats", "1", *PYTHON)
    done = trainmark("run", "examples/friedman/suite.yaml", *words, "--until", "rmse=0.5", "--name", "line")
    assert done.code == 0, done.err
    assert "RMSE 0." in done.err and "rmse=0.5 in 0:" in done.err
    (result,) = json.loads(trainmark("report", "line", "--format", "json").out)["results"]
    finish = result["finish"]
    assert (finish["target"], finish["reached"]) == ("rmse=0.5", 1)
    assert 0 < finish["best_rmse"] <= 0.5 == pytest.approx(finish["best_rmse"], abs=0.2)
    assert finish["lowest_rmse"] == finish["highest_rmse"] == finish["best_rmse"]
    assert finish["metrics"] == [{"name": "rmse", "title": "RMSE", "better": "lower", "share": False}]
    rows = trainmark("query", "SELECT best_rmse, target FROM trials", "--json")
    assert json.loads(rows.out) == [{"best_rmse": finish["best_rmse"], "target": "rmse=0.5"}]
    shown = trainmark("show", "line")
    assert "RMSE" in shown.out


def test_it_is_fitted(trainmark, folder):
    where = ("--framework", "pytorch", "--device", "cpu", "--cap", "2GB", "--most", "256", "--step", "64")
    done = trainmark("fit", *FAMILY, *where, "--axis", "width=64", "--json")
    assert done.code == 0, done.err
    (fit,) = json.loads(done.out)["fits"]
    assert (fit["width"], fit["largest"]) == (64, 256)
