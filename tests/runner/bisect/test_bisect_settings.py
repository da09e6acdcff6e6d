"""Differences of settings and variables: what they are, and which of them is the culprit."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time

import pytest

from trainmark.base.errors import UserError
from trainmark.runner.bisect.settings import SettingDifference, common_pairs, env_lines, setting_differences

PROGRAM = """
import os
import time

seconds = 0.012 if os.environ.get("POLLING") == "slow" else 0.004
began = time.perf_counter()
for step in range(1, 21):
    time.sleep(max(0.0, began + step * seconds - time.perf_counter()))
    print("step", step, flush=True)
"""


def test_what_is_alike_on_both_sides_is_no_difference():
    every = setting_differences(
        ["layout=NCHW"], ["layout=NHWC", "compile=true"], ["A=1", "B=1"], ["A=1", "B=2"]
    )
    assert every == (
        SettingDifference("setting", "layout", "NCHW", "NHWC"),
        SettingDifference("setting", "compile", None, "true"),
        SettingDifference("variable", "B", "1", "2"),
    )
    assert common_pairs(["A=1", "B=1"], ["A=1", "B=2"], "env") == {"A": "1"}


def test_variables_are_read_as_env_prints_them():
    text = "# of Monday\n\nexport A=1\nB=x=y\n"
    assert env_lines(text, "monday.env") == ["A=1", "B=x=y"]


def test_a_line_that_sets_nothing_is_refused_with_its_place():
    with pytest.raises(UserError, match=r"monday.env:2: 'nothing' is no NAME=VALUE line"):
        env_lines("A=1\nnothing\n", "monday.env")


@pytest.mark.parametrize(("variable", "word"), [("2X=1", "cannot name"), ("X", "is no difference")])
def test_what_names_no_variable_is_refused(variable, word):
    with pytest.raises(UserError, match=word):
        setting_differences([], [], [], [variable])


def test_the_variable_that_slows_the_program_is_found_among_three(tmp_path):
    (tmp_path / "train.py").write_text(PROGRAM, encoding="utf-8")
    (tmp_path / "bad.env").write_text("CACHE=1\nPOLLING=slow\n", encoding="utf-8")
    words = ["--bad-env-file", "bad.env", "--good-env", "LEVEL=1", "--bad-env", "LEVEL=2", "--error", "30%"]
    program = ["--pattern", r"step \d+", "--steps", "all", "--warmup", "2", "--", sys.executable, "train.py"]
    done = subprocess.run(
        [sys.executable, "-m", "trainmark", "bisect", *words, "--folder", "bisection", "--json", *program],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert report["culprits"] == ["POLLING=slow"]
    assert report["confirmation"]["ratio"] == pytest.approx(1 / 3, rel=0.2)
    assert report["trials"] == len(list(tmp_path.glob("bisection/steps/*/trials/*/[0-9][0-9]")))


def test_ctrl_c_in_the_second_trial_of_a_pair_stops_the_bisection_after_it(tmp_path):
    (tmp_path / "train.py").write_text(PROGRAM.replace("0.004", "0.05"), encoding="utf-8")
    program = ["--pattern", r"step \d+", "--steps", "all", "--warmup", "2", "--", sys.executable, "train.py"]
    words = ["bisect", "--bad-env", "POLLING=slow", "--folder", "bisection"]
    bisect = subprocess.Popen(
        [sys.executable, "-m", "trainmark", *words, *program],
        cwd=tmp_path,
        stderr=subprocess.PIPE,
        text=True,
    )
    with bisect:
        while len(list(tmp_path.glob("bisection/steps/*/trials/*"))) < 2 and bisect.poll() is None:
            time.sleep(0.02)
        bisect.send_signal(signal.SIGINT)
        shown = bisect.stderr.read()
    assert bisect.returncode == 130
    assert shown.count("  ok  ") == 2
    assert "go on with `trainmark bisect --resume bisection`" in shown
