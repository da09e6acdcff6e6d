"""What the shell offers after TAB."""

from __future__ import annotations

import pytest
from click.shell_completion import ShellComplete

from trainmark.cli.main import trainmark as group
from trainmark.suite.load import built_in_names

CASE = "pytorch-fp32-b32-1n1g"


def offered(line: str) -> list[str]:
    """The completions of the last word of a command line."""
    *words, typed = line.split(" ")
    complete = ShellComplete(group, {}, "trainmark", "_TRAINMARK_COMPLETE")
    return [item.value for item in complete.get_completions(words, typed) if item.type == "plain"]


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("com", ["compare"]),
        ("run qu", ["quick"]),
        ("launch-script resnet50-s", ["resnet50-scaling", "resnet50-strong-scaling"]),
        ("suites show qu", ["quick"]),
        ("run quick --precision a", ["amp"]),
        ("run quick --precision fp32,", ["fp32,tf32", "fp32,amp", "fp32,bf16"]),
        ("fit --precision fp32,b", ["fp32,bf16"]),
        ("run quick --framework py", ["pytorch"]),
        ("frameworks install py", ["pytorch"]),
        ("doctor --framework ja", ["jax"]),
        ("show l", []),
    ],
)
def test_suites_precisions_and_frameworks_are_offered(line, words, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert offered(line) == words


def test_every_built_in_suite_is_offered_and_files_too():
    complete = ShellComplete(group, {}, "trainmark", "_TRAINMARK_COMPLETE")
    items = complete.get_completions(["run"], "")
    assert [item.value for item in items if item.type == "plain"] == built_in_names()
    assert [item.type for item in items if item.type != "plain"] == ["file"]


@pytest.mark.parametrize(
    "line", ["report ", "show ", "export ", "compare before ", "forecast ", "run --resume ", "fabric --run "]
)
def test_runs_are_offered_the_newest_first(line, runs, monkeypatch):
    monkeypatch.chdir(runs.parent)
    assert offered(line) == ["latest", "after", "before", "failed"]


def test_runs_are_those_of_the_folder_that_is_named(runs, monkeypatch, tmp_path):
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    assert offered("show --runs ../runs b") == ["before"]
    monkeypatch.setenv("TRAINMARK_RUNS", "../runs")
    assert offered("show b") == ["before"]


def test_trials_of_the_named_run_are_offered(runs, monkeypatch):
    monkeypatch.chdir(runs.parent)
    assert offered("show failed pyt") == [f"{CASE}/01", f"{CASE}/02"]
    assert offered("show nowhere pyt") == []
