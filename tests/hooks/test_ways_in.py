"""Programs whose command takes PYTHONPATH away: found by name they are watched, else the user is told."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from trainmark.logs.trials import auto
from trainmark.logs.trials.output import Output, ReaderError
from trainmark.runner.command import WRAPPERS, keep_code

TOLD = (
    "import json, os, sys; print(json.dumps([sys.executable, sys.prefix, os.environ.get('PYTHONPATH'),"
    " os.environ['PATH'], 'sitecustomize' in sys.modules and sys.modules['sitecustomize'].__file__]))"
)
PYTHONS = Path(sys.executable).parent


@pytest.fixture
def code(tmp_path, monkeypatch):
    """What a run copies, made while this interpreter is on PATH."""
    monkeypatch.setenv("PATH", os.pathsep.join([str(PYTHONS), "/usr/bin", "/bin"]))
    keep_code(tmp_path / "code")
    return tmp_path / "code"


def started(code, tmp_path, *words, **variables):
    """What a Python tells of itself, started behind our folder on PATH."""
    (tmp_path / "events").mkdir(exist_ok=True)
    path = os.pathsep.join([str(code / WRAPPERS), os.environ["PATH"]])
    environment = {"PATH": path, "TRAINMARK_EVENTS": str(tmp_path / "events"), **variables}
    done = subprocess.run([*words, "-c", TOLD], env=environment, capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def test_a_python_found_by_its_name_has_the_hooks_again_and_is_itself(code, tmp_path):
    executable, prefix, path, places, hooks = started(code, tmp_path, "env", "PYTHONPATH=src dir", "python")
    assert (executable, prefix) == (str(PYTHONS / "python"), sys.prefix)
    injected = code / WRAPPERS.parent
    assert path == os.pathsep.join([str(injected), str(code), "src dir"])
    assert hooks == str(injected / "sitecustomize.py")
    assert places == os.environ["PATH"]  # as the program would have it without us
    assert (tmp_path / "events" / "hooks-started").exists()


def test_a_python_that_has_the_hooks_keeps_its_path_as_it_is(code, tmp_path):
    there = os.pathsep.join([str(code / WRAPPERS.parent), str(code), "src"])
    assert started(code, tmp_path, "python", PYTHONPATH=there)[2] == there


def test_nothing_is_added_to_what_is_not_measured(code, tmp_path):
    assert started(code, tmp_path, "python", PYTHONPATH="src", TRAINMARK_EVENTS="")[2] == "src"


def test_only_programs_that_there_are_can_be_found(code):
    names = {path.name for path in (code / WRAPPERS).iterdir()}
    assert "python" in names and all(shutil.which(name) for name in names)


def test_a_program_that_went_away_is_told_as_a_shell_tells_it(code, tmp_path):
    done = subprocess.run(
        [code / WRAPPERS / "python"], env={"PATH": str(tmp_path)}, capture_output=True, text=True
    )
    assert (done.returncode, done.stderr) == (127, "python: not found\n")


@pytest.mark.parametrize(
    ("marks", "sentence"),
    [
        ((), "hooks did not start in any Python: where the command sets PYTHONPATH"),
        (("hooks-started",), "only in Python that imported neither PyTorch nor Keras nor JAX"),
        (("hooks-started", "hooks-imported"), "no PyTorch optimizer, Keras fit or JAX gradient ran"),
    ],
)
def test_hooks_that_did_not_start_are_told_from_a_program_that_does_not_train(tmp_path, marks, sentence):
    for folder in ("events", "logs"):
        (tmp_path / folder).mkdir()
    (tmp_path / "logs" / "rank0.log").write_text("hello\n")
    for mark in marks:
        (tmp_path / "events" / mark).touch()
    with pytest.raises(ReaderError, match=sentence) as refused:
        list(auto.read(Output(tmp_path, 1, None)))
    assert str(refused.value).startswith("no step was seen") and "--pattern" in str(refused.value)
