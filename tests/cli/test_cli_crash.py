"""An error of our own: one sentence, a file with the trace, exit code 70, and no traceback."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

import trainmark.cli.main
from trainmark.cli import crash

SOURCE = Path(trainmark.cli.main.__file__).parents[2]


@pytest.fixture
def home(monkeypatch, tmp_path) -> Path:
    monkeypatch.setenv("TRAINMARK_HOME", str(tmp_path / "home"))
    return tmp_path / "home" / "crashes"


@pytest.fixture
def broken(monkeypatch, home):
    """`trainmark list` that ends in the exception given."""

    def break_with(error: BaseException) -> None:
        def overview(runs):
            raise error

        monkeypatch.setattr("trainmark.store.overview.overview", overview)

    return break_with


def endless():
    return endless()


def test_one_sentence_names_the_file_that_has_the_trace(trainmark, broken, home):
    broken(ValueError("two\nlines \x1b[31m"))
    result = trainmark("list")
    (file,) = home.iterdir()
    assert result.code == 70
    assert result.err == (
        f"trainmark: internal error (ValueError: two lines \\x1b[31m); the trace is in {file}, "
        "please report it with that file.\n"
    )
    text = file.read_text()
    assert "Traceback (most recent call last)" in text
    assert "command: trainmark list\n" in text
    assert f"python: {sys.version.split()[0]}" in text
    assert file.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(
    "error", [RecursionError("deep"), MemoryError(), KeyError("x"), AssertionError(), Exception()]
)
def test_no_kind_of_exception_gets_through(trainmark, broken, home, error):
    broken(error)
    result = trainmark("list")
    assert result.code == 70
    assert result.err.startswith(f"trainmark: internal error ({type(error).__name__}")
    assert "Traceback" not in result.err


def test_an_endless_recursion_is_said_in_a_sentence_too(trainmark, monkeypatch, home):
    monkeypatch.setattr("trainmark.store.overview.overview", lambda runs: endless())
    result = trainmark("list")
    assert (result.code, result.err.count("\n")) == (70, 1)


def test_the_trace_is_printed_as_well_where_it_is_asked_for(trainmark, broken, monkeypatch):
    monkeypatch.setenv("TRAINMARK_DEBUG", "1")
    broken(ValueError("seen"))
    assert "Traceback (most recent call last)" in trainmark("list").err


def test_secrets_are_in_neither_the_sentence_nor_the_file(trainmark, broken, home, monkeypatch):
    monkeypatch.setenv("HF_TOKEN", "hunter22-environment")
    broken(ValueError("hunter22-environment and https://me:hunter22-url@host/"))
    result = trainmark("list", "--runs", "DB_PASSWORD=hunter22 argument")
    (file,) = home.iterdir()
    assert result.code == 70
    assert "hunter22" not in result.err + file.read_text()


def test_a_command_line_keeps_all_but_its_secrets():
    words = ["trainmark", "run", "--set", "environment.DB_PASSWORD=a b", "--api-key", "x y", "--name", "mine"]
    assert crash.masked_arguments(words) == (
        "trainmark run --set 'environment.DB_PASSWORD=*****' --api-key '*****' --name mine"
    )


def test_files_are_never_overwritten_and_the_latest_are_kept(trainmark, broken, home, monkeypatch):
    broken(ValueError("again"))
    monkeypatch.setattr(crash, "MOST_CRASH_FILES", 3)
    for number in range(5):
        trainmark("list")
        assert len(list(home.iterdir())) == min(number + 1, 3)


def test_where_the_folder_cannot_be_written_the_file_is_a_temporary_one(
    trainmark, broken, home, tmp_path, monkeypatch
):
    home.parent.write_text("a file where the folder should be")
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    broken(ValueError("kept"))
    result = trainmark("list")
    (file,) = tmp_path.glob("trainmark-crash-*.txt")
    assert f"the trace is in {file}, " in result.err
    assert "ValueError: kept" in file.read_text()


def test_a_thread_s_end_is_a_sentence_too(capsys, home):
    with crash.quiet_threads():
        thread = threading.Thread(target=endless, name="sampler")
        thread.start()
        thread.join()
    stderr = capsys.readouterr().err
    assert stderr.startswith("trainmark: internal error in thread sampler (RecursionError: ")
    assert stderr.count("\n") == 1


def started(tmp_path, *words: str, **more):
    environment = {**os.environ, "PYTHONPATH": str(SOURCE), "TRAINMARK_HOME": str(tmp_path / "home"), **more}
    return subprocess.Popen(
        words,
        env=environment,
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        # A test run in the background has Ctrl-C ignored; a person's terminal has not.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )


def test_ctrl_c_while_it_is_imported_leaves_no_traceback(tmp_path):
    (tmp_path / "click.py").write_text("print('importing', flush=True)\nimport time\ntime.sleep(60)\n")
    command = (sys.executable, "-m", "trainmark", "list")
    process = started(tmp_path, *command, PYTHONPATH=f"{tmp_path}{os.pathsep}{SOURCE}")
    assert process.stdout.readline() == "importing\n"
    time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert (process.returncode, errors) == (130, "")


@pytest.mark.parametrize(
    ("redirection", "code", "message"),
    [
        ("| head -c1", 0, ""),
        ("> /dev/full", 2, "trainmark: No space left on device.\n"),
        (">&-", 0, ""),
    ],
)
def test_an_output_that_goes_nowhere_is_no_traceback(tmp_path, redirection, code, message):
    command = f"set -o pipefail; {sys.executable} -m trainmark suites show quick {redirection}"
    process = started(tmp_path, "bash", "-c", command)
    _, errors = process.communicate(timeout=60)
    assert (process.returncode, errors) == (code, message)
