"""Bad input: one sentence on standard error, exit code 2, nothing touched."""

from __future__ import annotations

import os
import subprocess
import sys

import click
import pytest

from trainmark.cli.main import COMMANDS
from trainmark.cli.main import trainmark as group

COMMAND_SUITE = "workload: {command: 'true'}\nrepeats: 1\n"


def every_command() -> list[tuple[str, ...]]:
    commands: list[tuple[str, ...]] = [()]
    context = click.Context(group)
    for name in group.list_commands(context):
        commands.append((name,))
        command = group.get_command(context, name)
        if isinstance(command, click.Group):
            commands += [(name, inner) for inner in command.list_commands(context)]
    return commands


@pytest.mark.parametrize("command", every_command(), ids=" ".join)
@pytest.mark.parametrize("option", ["--help", "-h"])
def test_the_help_of_every_command_shows_an_example_of_it(trainmark, command, option):
    result = trainmark(*command, option)
    assert (result.code, result.err) == (0, "")
    _, marked, examples = result.out.partition("Example")
    assert marked
    assert " ".join(["  trainmark", *command]) in examples


@pytest.mark.parametrize("group", ["", "data", "frameworks", "suites"])
def test_the_list_of_commands_is_whole_in_80_columns(trainmark, group, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    listed = trainmark(*group.split(), "--help").out.partition("Options:\n")[2].splitlines()
    assert listed
    assert not [line for line in listed if line.endswith("...") or len(line) > 80]


def test_without_a_command_it_shows_its_help(trainmark):
    result = trainmark()
    assert result.code == 0
    assert all(name in result.out for name in COMMANDS)


def test_the_version_is_told(trainmark):
    result = trainmark("--version")
    assert result.code == 0
    assert result.out.startswith("trainmark, version ")


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["rnu"], "there is no command 'rnu'; did you mean 'run'?"),
        (["zzzzzzzz"], "there is no command 'zzzzzzzz'; known are "),
        (["--speed"], "No such option"),
        (["list", "--jsno"], "--json"),
        (["list", "more"], "Got unexpected extra argument"),
        (["compare", "before"], "Missing argument 'AFTER...'"),
        (["report", "--format", "pdf"], "'pdf' is not one of"),
        (["report", "--lang", "fr"], "'fr' is not one of"),
        (["report", "gone"], "there is no run 'gone' in runs; there are failed, before, after."),
        (["show", "gone"], "there is no run 'gone'"),
        (["show", "x" * 5000], "File name too long"),
        (["compare", "before", "gone"], "there is no run 'gone'"),
        (
            ["run", "quick", "--precision", "fp8"],
            "--precision fp8: 'precision' takes fp32, tf32, amp or bf16",
        ),
        (["run", "quick", "--set", "precision=fp8"], "--set precision=fp8: 'precision' takes"),
        (["run", "quick", "--until", "top9=1"], "--until top9=1: 'until' has no key 'top9'"),
        (["run", "quick", "--batch", "0"], "--batch 0: 'batch_per_device' takes a whole number"),
        (["launch-script", "quick", "--topology", "1x", "--hosts", "a"], "--topology 1x: 'topology'"),
        (["query", "SELEC"], "the query was refused: "),
        (["suites", "show", "quik"], "there is no suite 'quik'; did you mean 'quick'?"),
        (["suites", "shwo"], "shwo"),
        (["run", "quik"], "there is no suite 'quik'; did you mean 'quick'?"),
        (["run", "gone.yaml"], "there is no suite file gone.yaml; built in are bert-dlperf, gpt2,"),
        (["run", "x" * 5000], "File name too long"),
        (["run", "quick", "--precision", "fp33"], "--precision fp33: 'precision' takes fp32,"),
        (["run", "quick", "--set", "nonsense"], "'nonsense' is not an override; write KEY=VALUE"),
        (["run", "quick", "--port", "70000"], "70000 is not in the range"),
        (["run", "--resume", "gone"], "there is no run 'gone'"),
        (["run", "--resume", "before", "--precision", "amp"], "a resumed run keeps its suite"),
        (["run", "--retry-failed"], "--retry-failed goes with --resume."),
        (["list", "--runs", "a-file"], "a-file"),
        (["env", "--python", "gone"], "gone"),
    ],
    ids=lambda value: " ".join(value)[:40] if isinstance(value, list) else "",
)
def test_bad_input_gets_one_sentence_and_exit_code_2(trainmark, runs, words, sentence):
    (runs.parent / "a-file").write_text("")
    result = trainmark(*words)
    assert (result.code, result.out) == (2, "")
    assert result.err.startswith("trainmark: ")
    assert sentence in result.err
    assert result.err.count("\n") == 1


def test_a_suite_that_is_no_text_cannot_be_shown_or_run(trainmark, tmp_path):
    (tmp_path / "binary.yaml").write_bytes(b"\xff\xfe\x00")
    for words in (["suites", "show", "binary.yaml"], ["run", "binary.yaml"]):
        result = trainmark(*words)
        assert (result.code, result.err) == (
            2,
            "trainmark: binary.yaml is not UTF-8 text and cannot be a suite.\n",
        )


@pytest.mark.parametrize("runs_folder", ["/dev/null/runs", "/proc/runs"])
def test_a_folder_that_cannot_be_written_is_refused_before_anything_runs(trainmark, tmp_path, runs_folder):
    (tmp_path / "mine.yaml").write_text(COMMAND_SUITE)
    result = trainmark("run", "mine.yaml", "--runs", runs_folder)
    assert (result.code, result.out) == (2, "")
    assert "cannot be written" in result.err
    assert result.err.endswith("choose another --runs.\n")


def test_a_run_of_the_same_name_is_left_as_it_is(trainmark, runs, tmp_path):
    (tmp_path / "mine.yaml").write_text(COMMAND_SUITE)
    before = {path: path.stat().st_mtime_ns for path in (runs / "before").rglob("*")}
    result = trainmark("run", "mine.yaml", "--name", "before")
    assert result.code == 2
    assert "add --resume to go on with it, or choose another --name" in result.err
    assert {path: path.stat().st_mtime_ns for path in (runs / "before").rglob("*")} == before


@pytest.mark.parametrize("words", [["report", "--format", "html"], ["report", "--format", "json"], ["list"]])
def test_a_reader_that_leaves_early_is_not_an_error(runs, words):
    process = subprocess.Popen(
        [sys.executable, "-m", "trainmark", *words],
        cwd=runs.parent,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "PYTHONWARNINGS": "error"},
    )
    process.stdout.close()
    assert process.stderr.read() == b""
    process.stderr.close()
    assert process.wait() == 0
