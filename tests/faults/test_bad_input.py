"""What cannot run is refused before anything starts: one sentence, exit code 2, nothing made."""

import importlib.util
import subprocess
import sys

import pytest

COMMAND = "workload: {command: 'true'}\n"


@pytest.fixture
def bare_python(tmp_path):
    """An interpreter without any framework."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(tmp_path / "bare")], check=True)
    return str(tmp_path / "bare" / "bin" / "python")


@pytest.mark.parametrize(
    "broken",
    [
        b"cases: [",
        b"\xff\xfe\x00",
        b"- a\n- list\n",
        b"just text",
        b"batchsize: 3\n",
        b"repeats: many\n",
        b"repeats: {min: 5, max: 2}\n",
        b"topology: 2x2\n",
        b"precision: []\n",
        b"cases: [7]\n",
        b"workload: resnet51\n",
        b"framework: caffe\n",
        b"limits: {silence: soon}\n",
        b"workload: {reader: probe}\n",
        b"workload: {command: 'true', reader: nosuch}\n",
        b"workload: {command: 'train --batch {batchsize}'}\n",
        b"name: ../escape\n",
    ],
)
def test_a_broken_suite_is_refused_in_one_sentence_before_anything_is_made(trainmark, broken):
    (trainmark.folder / "suite.yaml").write_bytes(broken)
    done = trainmark.run()
    assert done.code == 2
    assert done.errors.startswith("trainmark: ") and len(done.errors.splitlines()) == 1
    assert not trainmark.runs.exists()


@pytest.mark.parametrize(
    "arguments",
    [
        ["run", "no-such-suite"],
        ["run", "no/such/suite.yaml"],
        ["run", "--resume", "no-such-run"],
        ["run", "suite.yaml", "--set", "nonsense"],
        ["run", "suite.yaml", "--name", "../escape"],
        ["run", "suite.yaml", "--port", "0"],
        ["run", "suite.yaml", "--retry-failed"],
        ["run", "suite.yaml", "--topology", "1n4096g"],
    ],
)
def test_a_wrong_command_line_is_refused_in_one_sentence_before_anything_is_made(trainmark, arguments):
    (trainmark.folder / "suite.yaml").write_text(f"device: cpu\n{COMMAND}")
    done = trainmark.finish(trainmark.start(*arguments))
    assert done.code == 2
    assert done.errors.startswith("trainmark: ") and len(done.errors.splitlines()) == 1
    assert not trainmark.runs.exists()


def test_a_run_that_exists_is_left_as_it_is(trainmark):
    trainmark.program()
    trainmark.run("--name", "mine")
    before = {path: path.stat().st_mtime_ns for path in trainmark.runs.rglob("*")}
    done = trainmark.run("--name", "mine")
    assert done.code == 2 and "--resume" in done.errors
    assert {path: path.stat().st_mtime_ns for path in trainmark.runs.rglob("*")} == before


def test_a_framework_that_is_not_installed_is_refused_when_nothing_else_is_left(trainmark, bare_python):
    trainmark.suite(python=bare_python)
    done = trainmark.run()
    assert done.code == 2 and "pytorch is not installed" in done.errors and bare_python in done.errors
    assert not trainmark.runs.exists()


def test_an_interpreter_that_does_not_exist_is_named(trainmark):
    trainmark.suite(python="/no/such/python")
    done = trainmark.run()
    assert done.code == 2 and "/no/such/python does not start" in done.errors


def test_a_framework_that_is_not_installed_is_skipped_with_the_reason_beside_what_can_run(
    trainmark, bare_python
):
    trainmark.program()
    program = {"name": "program", "command": "{python} -u program.py"}
    trainmark.suite(cases=[{"workload": program}, {"python": bare_python}])
    done = trainmark.run()
    assert done.code == 0 and "skipped" in done.errors
    shown = trainmark.shown()
    assert [trial["outcome"] for trial in shown["trials"]] == ["ok"]
    assert "is not installed" in shown["skipped"][0]["reason"]


@pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="PyTorch is not installed")
def test_what_a_framework_cannot_do_here_is_skipped_before_anything_starts(trainmark):
    trainmark.suite(precision="tf32")
    done = trainmark.run()
    assert done.code == 2 and "tf32 needs" in done.errors
    assert not trainmark.runs.exists()
