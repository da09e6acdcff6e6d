"""A framework is asked in a process of its own, whatever that prints; a run uses the right interpreter."""

import sys
from pathlib import Path

import pytest

from trainmark.machine.frameworks.installed import EnvironmentFiles, Marker, write_marker
from trainmark.runner.command import RankInterpreter, command_of, interpreter
from trainmark.runner.inventory import Answers, Question, ask
from trainmark.suite.load import parse
from trainmark.workloads.declaration import Workload
from trainmark.workloads.registry import Family

TWO = [Question(("--precision", "fp32")), Question(("--precision", "amp"))]
ANSWERING = """
import json, sys
{at_start}
print(json.dumps({{"framework_version": "1.0"}}))
for line in sys.stdin:
    {each_time}
    asked = json.loads(line)
    print(json.dumps("not amp" if "amp" in asked["arguments"] else None))
{at_end}
"""


@pytest.fixture
def program(tmp_path):
    """Writes a workload that answers, and says what else it does."""

    def write(at_start="pass", each_time="pass", at_end="pass"):
        text = ANSWERING.format(at_start=at_start, each_time=each_time, at_end=at_end)
        folder = tmp_path / "toy"
        folder.mkdir()
        (folder / "toyframework.py").write_text(text)
        return Family(Workload("toy", "a toy", "rows"), str(folder), folder, "toy")

    return write


@pytest.mark.parametrize(
    "noise",
    [
        {},
        {"at_start": "print('note: no GPU'); print('{oops'); print('\"quoted\"')"},
        {"each_time": "print('now 1 of 2'); print('null pointer')"},
        {"at_start": "for _ in range(300): print('x' * 100_000)"},
        {"each_time": "sys.stdout.write('y' * 9_000_000 + '\\n')"},
        {"at_end": "import subprocess; subprocess.Popen(['sleep', '600'])"},
    ],
)
def test_the_answers_are_found_among_whatever_else_is_printed(program, noise):
    assert ask(RankInterpreter(sys.executable), program(**noise), "toyframework", TWO) == Answers(
        {"framework_version": "1.0"}, (None, "not amp")
    )


@pytest.mark.parametrize(
    ("fault", "reason"),
    [
        ("import time; time.sleep(600)", "it did not answer within 3 s"),
        ("import os; os.abort()", "it was ended by SIGABRT"),
        ("raise RuntimeError('no driver')", "RuntimeError: no driver"),
        ("sys.exit(0)", "it ended without an answer"),
        ("import nosuchframework", "ModuleNotFoundError: No module named 'nosuchframework'"),
    ],
)
def test_a_framework_that_does_not_answer_says_why(program, fault, reason):
    answer = ask(RankInterpreter(sys.executable), program(at_start=fault), "toyframework", TWO, limit=3)
    assert answer.silent == reason


def test_an_interpreter_that_does_not_exist_is_named(program):
    assert ask(RankInterpreter("/no/such/python"), program(), "toyframework", TWO).silent == (
        "/no/such/python does not start: No such file or directory"
    )


@pytest.fixture
def environment(tmp_path, monkeypatch):
    """An environment of PyTorch, as far as its marker goes."""
    monkeypatch.setenv("TRAINMARK_HOME", str(tmp_path))
    place = EnvironmentFiles("pytorch")
    place.folder.mkdir(parents=True)
    write_marker(place.folder, Marker("pytorch", "2.13.0", "3.11.7", "0", "2026-01-01T00:00:00Z"))
    return str(place.python)


def case(text):
    (only,) = parse(f"device: cpu\n{text}", "suite.yaml").cases
    return only


def test_a_run_takes_the_environment_of_its_framework(environment):
    assert str(interpreter(case("framework: pytorch"))) == environment
    assert command_of(case("framework: pytorch"), Path("code"), Path("trial"))[0] == environment


def test_the_interpreter_that_a_suite_names_goes_first(environment):
    assert (
        str(interpreter(case("framework: pytorch\npython: /opt/mine/bin/python"))) == "/opt/mine/bin/python"
    )


def test_a_program_of_ones_own_keeps_the_interpreter_of_trainmark(environment):
    assert str(interpreter(case("workload: {command: '{python} train.py'}"))) == sys.executable


def test_without_an_environment_a_framework_runs_with_the_interpreter_of_trainmark():
    assert str(interpreter(case("framework: pytorch"))) == sys.executable
