"""templates/benchmark.yml: its script run as GitLab's runner runs it."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import pytest
import yaml
from shell_steps import ROOT, bash, python_in

TEXT = (ROOT / "templates" / "benchmark.yml").read_text(encoding="utf-8")
SPEC = next(yaml.safe_load_all(TEXT))["spec"]["inputs"]
INPUT = re.compile(r"\$\[\[ inputs\.([\w-]+) \]\]")


def job(**inputs):
    """The one job of the template, its inputs filled in."""
    given = {name: (about or {}).get("default") for name, about in SPEC.items()} | {"install": ""} | inputs
    document = INPUT.sub(lambda match: str(given[match[1]]), TEXT.partition("\n---\n")[2])
    ((name, definition),) = yaml.safe_load(document).items()
    assert name == given["job"]
    return definition


def script(folder, definition, branch="feature"):
    """Runs the job's script with the variables that GitLab sets."""
    python_in(folder)
    variables = {name: str(value) for name, value in definition["variables"].items()}
    variables |= {"CI_JOB_ID": "1", "CI_COMMIT_BRANCH": branch, "CI_DEFAULT_BRANCH": "main"}
    return bash("\n".join(definition["script"]), folder, variables)


def failures(folder):
    return [
        each.get("type") for each in ElementTree.parse(folder / "trainmark-junit/junit.xml").iter("failure")
    ]


def test_the_default_branch_makes_the_baseline_and_others_read_it(checkout):
    definition = job(run="suite.yaml")
    assert script(checkout, definition, "feature").code == 0
    assert not (checkout / "trainmark-runs/baseline").exists()
    (checkout / "trainmark-runs/run-1").rename(checkout / "trainmark-runs/run-0")
    assert script(checkout, definition, "main").code == 0
    assert (checkout / "trainmark-runs/baseline/run.json").is_file()
    assert failures(checkout) == []


@pytest.mark.parametrize(("baseline", "code", "types"), [(1.0, 1, ["crashed"]), (None, 1, ["crashed"])])
def test_failed_trials_fail_the_job_and_stay_out_of_the_baseline(checkout, measured, baseline, code, types):
    if baseline:
        measured("baseline")
    assert script(checkout, job(run="failing.yaml"), "main").code == code
    assert failures(checkout) == types
    assert (checkout / "trainmark-runs/baseline").exists() == bool(baseline)


@pytest.mark.parametrize(("factor", "code", "types"), [(0.9, 1, ["regression"]), (1.0, 0, [])])
def test_only_a_certain_regression_fails_the_job(checkout, measured, factor, code, types):
    """The run is there already; what measures is a program that does nothing."""
    measured("baseline")
    measured("run-1", factor)
    definition = job(run="suite.yaml")
    definition["script"] = [
        line.replace("python3 -m trainmark run ", "true ") for line in definition["script"]
    ]
    assert script(checkout, definition).code == code
    assert failures(checkout) == types


def test_what_the_template_keeps_is_what_the_script_writes():
    definition = job(run="suite.yaml")
    whole = "\n".join(definition["script"])
    for path in (*definition["cache"]["paths"], "trainmark-junit"):
        assert path in whole
    assert definition["artifacts"]["reports"]["junit"] == "trainmark-junit/junit.xml"
    assert definition["artifacts"]["when"] == "always"


def test_every_input_is_used_and_every_one_used_is_declared():
    assert set(INPUT.findall(TEXT)) == set(SPEC)
