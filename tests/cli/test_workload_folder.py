"""A workload family in a folder of its own: run, conformed, fitted and reported without a change of ours."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

import pytest

COUNTER = Path(__file__).with_name("counter")
SUITE = """
workload: ./counter
framework: plain
topology: [1n1g, 1n2g]
width: [8, 16]
device: cpu
repeats: 1
warmup: {steps: 2}
measure: {steps: 30}
"""


@pytest.fixture
def folder(tmp_path) -> Path:
    shutil.copytree(COUNTER, tmp_path / "counter", ignore=shutil.ignore_patterns("__pycache__"))
    (tmp_path / "suite.yaml").write_text(SUITE)
    return tmp_path


def test_it_runs_on_one_rank_and_two_under_its_own_unit_and_axes(trainmark, folder):
    done = trainmark("run", "suite.yaml", "--name", "a", "--json")
    assert done.code == 0, done.err
    results = json.loads(done.out)["results"]
    keys = [(r["workload"], r["framework_version"], r["width"], r["kind"], r["nodes"]) for r in results]
    assert keys == [("counter", "1.0", width, "plain", 1) for width in (8, 16, 8, 16)]
    assert {r["throughput"]["unit"] for r in results} == {"rows/s"}
    assert all(r["speedup"] is not None and r["image_size"] is None for r in results)
    cases = sorted(path.name for path in (folder / "runs" / "a" / "trials").iterdir())
    assert cases == [f"counter-plain-fp32-b32-1n{n}g{axis}" for n in (1, 2) for axis in ("", "-w16")]


def test_what_ran_is_kept_with_the_run_and_resumed_from_there(trainmark, folder):
    assert trainmark("run", "suite.yaml", "--name", "a", "--set", "width=8", "--topology", "1n1g").code == 0
    code = folder / "runs" / "a" / "code" / "counter"
    assert sorted(path.name for path in code.glob("*.py")) == ["__init__.py", "plain.py", "workload.py"]
    shutil.rmtree(folder / "runs" / "a" / "trials")
    assert trainmark("run", "--resume", "a").code == 0
    assert [path.name for path in (folder / "runs" / "a" / "trials").glob("*/*")] == ["01"]


def test_the_index_has_a_column_for_each_of_its_axes(trainmark, folder):
    assert trainmark("run", "suite.yaml", "--name", "a", "--topology", "1n1g").code == 0
    done = trainmark("query", "SELECT width, kind FROM trials ORDER BY width", "--json")
    assert json.loads(done.out) == [{"width": 8, "kind": "plain"}, {"width": 16, "kind": "plain"}]


def test_it_is_conformed_by_its_own_comparison(trainmark, folder):
    words = ("conform", "plain", "--workload", "./counter", "--python", sys.executable, "--json")
    done = trainmark(*words)
    (verdict,) = json.loads(done.out)
    assert done.code == 0 and verdict["workload"] == "counter"
    assert [(check["ranks"], check["differs"]) for check in verdict["checks"]] == [(1, []), (2, [])]


VARIANTS = """
from dataclasses import replace

from trainmark.workloads.declaration import Comparison, Variant

longer = Variant(
    "4 steps", ("--steps", "4"), ranks=(1,), compare=lambda shown: Comparison((), largest_loss_error=0.0)
)
refused = Variant("tf32", ("--precision", "tf32"), ranks=(1,))
unproven = Variant("width 2", ("--width", "2"), ranks=(), ranks_if_unproven=(1, 2))
variants = (refused, Variant(ranks=(1,)), longer, unproven)
WORKLOAD = replace(WORKLOAD, conformance=replace(WORKLOAD.conformance, variants=variants))
"""


def test_every_variant_is_checked_on_its_ranks_by_its_own_comparison_or_shown_as_refused(trainmark, folder):
    with (folder / "counter" / "workload.py").open("a") as declaration:
        declaration.write(VARIANTS)
    done = trainmark("conform", str(folder / "counter"), "plain", "--python", sys.executable, "--json")
    (verdict,) = json.loads(done.out)
    checks = [(check["ranks"], check["variant"], check["refused"]) for check in verdict["checks"]]
    # The last is tried on two ranks alone, where nothing has passed before it.
    assert checks == [
        (1, "tf32", "no tf32 here."), (1, "", None), (1, "4 steps", None), (2, "width 2", None)
    ]  # fmt: skip
    assert done.code == 0 and verdict["conformant"]


def test_a_run_is_marked_with_the_verdict_on_its_copy_of_the_code(trainmark, folder):
    assert trainmark("conform", "plain", "--workload", "./counter", "--python", sys.executable).code == 0
    assert trainmark("run", "suite.yaml", "--name", "a", "--set", "width=8", "--topology", "1n1g").code == 0
    (result,) = json.loads(trainmark("report", "a", "--format", "json").out)["results"]
    assert result["conformance"]["conformant"] is True


def test_its_axes_stand_in_tables_with_their_names(trainmark, folder):
    done = trainmark("run", "suite.yaml", "--name", "a", "--topology", "1n1g")
    assert done.code == 0 and "width 8" in done.out and "width 16" in done.out


def test_it_is_fitted_at_the_axes_that_are_asked_for(trainmark, folder):
    where = ("--framework", "plain", "--python", sys.executable, "--device", "cpu", "--cap", "1GB")
    asked = ("--most", "64", "--axis", "width=4", "--json")
    done = trainmark("fit", "--workload", "./counter", *where, *asked)
    (fit,) = json.loads(done.out)["fits"]
    assert (fit["width"], fit["kind"], fit["largest"], fit["peak"]) == (4, "plain", 64, 64_000)


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ("workload: ./nowhere", "nowhere is no workload: it has no workload.py."),
        (f"workload: ./{'a' * 300}", "cannot name a folder"),
        ("workload: ~nosuchuser/x", "cannot name a folder"),
        ("image_size: 64", "unknown key 'image_size'"),
        ("kind: odd", "'kind' takes plain or fancy, not 'odd'."),
        ("width: 0", "'width' takes a whole number from 1 up, not 0."),
        ("layout: NHWC", "'layout' takes any, not 'NHWC'."),
        ("data: images", "'data' takes synthetic or synthetic-host, not 'images'."),
        ("until: {top1: 0.7}", "'until' has no key 'top1'"),
        ("until: {perplexity: 20}", "counter trains for a number of steps only; leave 'epochs' and"),
        ("framework: pytorch", "counter has no framework 'pytorch'"),
    ],
)
def test_what_it_does_not_declare_is_refused_in_one_sentence(trainmark, folder, line, sentence):
    key = line.partition(":")[0]
    lines = [each for each in SUITE.strip().splitlines() if not each.startswith(f"{key}:")]
    (folder / "suite.yaml").write_text("\n".join([*lines, line]))
    done = trainmark("run", "suite.yaml", "--dry-run")
    assert (done.code, done.err.count("\n")) == (2, 1)
    assert sentence in done.err


def test_a_declaration_that_fails_is_named(trainmark, folder):
    (folder / "counter" / "workload.py").write_text("raise RuntimeError('not today')")
    done = trainmark("run", "suite.yaml", "--dry-run")
    assert done.code == 2 and "workload.py cannot be imported: RuntimeError: not today." in done.err
