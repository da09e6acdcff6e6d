"""action.yml: every shell step run as GitHub runs it, on real and on fabricated runs."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import pytest
import yaml
from fabricated_runs import BUSY, fabricate_program
from shell_steps import EXPRESSION, ROOT, bash, filled_in, python_in

ACTION = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))
STEPS = ACTION["runs"]["steps"]
RUN = "trainmark-runs/run-1-1"


class Job:
    """One use of the action: its inputs, and the outputs of the steps that have run."""

    def __init__(self, folder, **inputs):
        self.folder = folder
        given = {name: str(about.get("default", "")) for name, about in ACTION["inputs"].items()}
        given |= {"install": "", "python": python_in(folder)} | inputs
        self.values = {f"inputs.{name}": value for name, value in given.items()}
        self.values |= {
            "github.run_id": "1",
            "github.run_attempt": "1",
            "github.action_path": "/action",
            "github.event.repository.default_branch": "main",
        }
        self.variables = {"GITHUB_REF": "refs/pull/7/merge"}

    def step(self, name):
        (step,) = [step for step in STEPS if step["name"] == name]
        environment = {key: filled_in(value, self.values) for key, value in step["env"].items()}
        ended = bash(step["run"], self.folder, {**self.variables, **environment})
        self.values |= {
            f"steps.{step['id']}.outputs.{key}": value for key, value in ended.outputs.items() if "id" in step
        }
        return ended

    def judged(self, code="0"):
        """Everything after the measurement; gives the verdict's exit code."""
        self.values |= {"steps.measure.outputs.run": RUN, "steps.measure.outputs.code": code}
        for name in ("Compare with the baseline", "Take the run as the baseline"):
            ended = self.step(name)
            assert ended.code == 0, ended.err
        return self.step("Tell the verdict").code

    @property
    def verdict(self):
        return self.values["steps.judge.outputs.verdict"]

    @property
    def summary(self):
        return (self.folder / "summary.md").read_text(encoding="utf-8")


def failures(folder):
    return [
        each.get("type")
        for each in ElementTree.parse(folder / RUN / "export/junit/junit.xml").iter("failure")
    ]


def test_a_first_run_of_the_default_branch_passes_and_becomes_the_baseline(checkout):
    job = Job(checkout, run="suite.yaml")
    job.variables["GITHUB_REF"] = "refs/heads/main"
    assert job.step("Measure").outputs == {"run": RUN, "code": "0"}
    assert job.judged() == 0
    assert (job.verdict, job.values["steps.take.outputs.taken"]) == ("no-baseline", "true")
    assert (checkout / "trainmark-runs/baseline/run.json").is_file()
    assert "mine  b32  1n1g" in re.sub(" {3,}", "  ", job.summary)
    assert failures(checkout) == []


def test_failed_trials_fail_the_job_after_the_summary_is_written(checkout):
    job = Job(checkout, run="failing.yaml")
    assert job.step("Measure").outputs["code"] == "1"
    assert job.judged("1") == 1
    assert (job.verdict, failures(checkout)) == ("failed-trials", ["crashed"])
    assert "no trial succeeded" in job.summary


def test_bad_input_ends_the_job_at_once(checkout):
    ended = Job(checkout, run="nowhere.yaml").step("Measure")
    assert ended.code == 2
    assert "there is no suite file nowhere.yaml" in ended.err


@pytest.mark.parametrize(
    ("factor", "verdict", "code", "types"),
    [(0.9, "regression", 1, ["regression"]), (1.0, "passed", 0, []), (1.1, "passed", 0, [])],
)
def test_only_a_certain_regression_fails_the_job(checkout, measured, factor, verdict, code, types):
    measured("baseline")
    measured("run-1-1", factor)
    job = Job(checkout)
    assert job.judged() == code
    assert (job.verdict, failures(checkout)) == (verdict, types)
    assert job.summary.count("1n1g") > 1  # the result, and its row of the comparison


def test_a_slowdown_on_a_busy_host_warns_and_leaves_the_baseline(checkout):
    for name, rate in (("baseline", 100.0), ("run-1-1", 50.0)):
        fabricate_program(checkout / "trainmark-runs", name, "python train.py", [rate] * 6, (BUSY,))
    job = Job(checkout)
    job.variables["GITHUB_REF"] = "refs/heads/main"
    assert (job.judged(), job.verdict, failures(checkout)) == (0, "not-judged", [])
    assert job.values["steps.take.outputs.taken"] == "false"


def test_a_slowdown_that_too_few_trials_leave_open_passes(checkout, measured):
    measured("baseline", trials=2)
    measured("run-1-1", 0.9, trials=2)
    job = Job(checkout)
    assert (job.judged(), job.verdict, failures(checkout)) == (0, "passed", [])


def test_a_baseline_without_a_common_case_is_none(checkout, measured):
    measured("run-1-1")
    job = Job(checkout, run="suite.yaml")
    job.values["github.run_id"] = "0"
    job.step("Measure")
    (checkout / "trainmark-runs/run-0-1").rename(checkout / "trainmark-runs/baseline")
    assert (job.judged(), job.verdict) == (0, "no-baseline")


@pytest.mark.parametrize(
    ("update", "reference", "factor", "taken"),
    [
        ("auto", "refs/heads/main", 1.0, "true"),
        ("auto", "refs/heads/main", 0.9, "false"),
        ("auto", "refs/pull/7/merge", 1.0, "false"),
        ("never", "refs/heads/main", 1.0, "false"),
        ("always", "refs/pull/7/merge", 0.9, "true"),
    ],
)
def test_which_runs_become_the_baseline(checkout, measured, update, reference, factor, taken):
    measured("baseline")
    measured("run-1-1", factor)
    job = Job(checkout, **{"update-baseline": update})
    job.variables["GITHUB_REF"] = reference
    job.judged()
    assert job.values["steps.take.outputs.taken"] == taken


def test_quotes_hold_words_together_and_nothing_of_the_input_is_expanded(checkout):
    python = python_in(checkout, "recording", 'for word in "$@"; do echo "$word" >> words.txt; done')
    job = Job(
        checkout, run="""suite.yaml --set about="$(touch hacked) two"\n-- python train.py""", python=python
    )
    assert job.step("Measure").code == 0
    words = (checkout / "words.txt").read_text().splitlines()
    assert words[-6:] == ["suite.yaml", "--set", "about=$(touch hacked) two", "--", "python", "train.py"]
    assert not (checkout / "hacked").exists()


@pytest.mark.parametrize(("install", "words"), [("/action", ["/action"]), ("", [])])
def test_trainmark_is_installed_from_the_action_itself_unless_it_is_there(checkout, install, words):
    assert ACTION["inputs"]["install"]["default"] == "${{ github.action_path }}"
    python = python_in(checkout, "recording", 'echo "$@" >> words.txt')
    assert Job(checkout, install=install, python=python).step("Install Trainmark").code == 0
    assert (checkout / "words.txt").exists() == bool(words)
    if words:
        assert (checkout / "words.txt").read_text().split()[-1:] == words


def test_every_name_in_an_expression_exists_and_no_shell_holds_an_expression():
    known = {f"inputs.{name}" for name in ACTION["inputs"]}
    known |= {f"steps.measure.outputs.{name}" for name in ("run", "code")}
    known |= {f"steps.judge.outputs.{name}" for name in ("verdict", "junit")}
    for step in STEPS:
        assert ("uses" in step) != (step.get("shell") == "bash" and "run" in step)
        assert "${{" not in step.get("run", "")
    named = set(EXPRESSION.findall((ROOT / "action.yml").read_text(encoding="utf-8")))
    assert {name for name in named if name.startswith(("inputs.", "steps."))} <= known
