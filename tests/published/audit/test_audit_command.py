"""`trainmark audit` as scripts and people meet it."""

import json
import subprocess
import sys

import pytest
from report_texts import CONSISTENT, ENGLISH, LOGGED


def audit(*arguments):
    command = [sys.executable, "-m", "trainmark", "audit", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True)


@pytest.fixture
def wrong(tmp_path):
    path = tmp_path / "wrong.md"
    path.write_text(ENGLISH.replace("15.36", "15.63"), encoding="utf-8")
    return path


def test_an_error_is_printed_with_its_place_and_exits_with_1(wrong):
    done = audit(wrong)
    assert done.returncode == 1
    assert (
        "line 11: the speed-up of 16 devices is 15.36 by the row on line 9.  [speedup-mismatch]"
        in done.stdout
    )


def test_the_json_of_a_finding_has_what_scripts_rely_on(wrong):
    (finding,) = json.loads(audit(wrong, "--json").stdout)["findings"]
    assert finding == {
        "code": "speedup-mismatch",
        "severity": "error",
        "where": f"{wrong}:11",
        "claimed": "15.63",
        "derived": "15.36",
        "message": "the speed-up of 16 devices is 15.36 by the row on line 9.",
    }


def test_a_folder_of_consistent_reports_exits_with_0(tmp_path):
    for name, text in CONSISTENT.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    done = audit(tmp_path)
    assert done.returncode == 0
    assert done.stdout.count("nothing found") == len(CONSISTENT)


def test_warnings_alone_exit_with_0(tmp_path):
    path = tmp_path / "report.md"
    path.write_text(LOGGED.replace("--mom 0.875", "--mom 0.125"), encoding="utf-8")
    done = audit(path)
    assert (done.returncode, "0 errors, 1 warning, 0 notes" in done.stdout) == (0, True)


def test_a_path_that_is_not_there_is_bad_input(tmp_path):
    done = audit(tmp_path / "gone.md")
    assert (done.returncode, done.stderr) == (
        2,
        f"trainmark: {tmp_path / 'gone.md'}: no such file or folder.\n",
    )


def test_a_binary_file_is_bad_input(tmp_path):
    path = tmp_path / "report.md"
    path.write_bytes(b"\x7fELF\x00\x01")
    done = audit(path)
    assert (done.returncode, "a binary file" in done.stderr) == (2, True)


def test_a_folder_without_anything_to_read_is_bad_input(tmp_path):
    (tmp_path / "picture.png").write_bytes(b"\x89PNG\x00")
    done = audit(tmp_path)
    assert (done.returncode, "holds no report and no log" in done.stderr) == (2, True)


def test_what_a_report_says_cannot_move_the_cursor(tmp_path):
    path = tmp_path / "report.md"
    path.write_text(ENGLISH.replace("15.36 ", "15.63 \x1b[2J"), encoding="utf-8")
    assert "\x1b" not in audit(path).stdout
