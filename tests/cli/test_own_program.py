"""One's own program on the command line: what is taken for it, and what is refused."""

from __future__ import annotations

import sys

import pytest
import yaml

from trainmark.cli.run.program import name_of
from trainmark.suite import load


@pytest.mark.parametrize(
    "line, name",
    [
        ("python train.py --lr 0.1", "train"),
        ("torchrun --nproc-per-node 8 src/pretrain_gpt.py", "pretrain-gpt"),
        ("python -m my_pkg.Main --config a.yaml", "main"),
        ("./bin/trainer --gpus 8", "trainer"),
        ("python", "python"),
    ],
)
def test_a_case_is_named_after_the_script(line, name):
    assert name_of(line.split()) == name


@pytest.mark.parametrize(
    "words, sentence",
    [
        (("run", "--"), "nothing stands behind `--`"),
        (("run", "quick", "--", "python"), "name one of them"),
        (("run", "absent.py"), "there is no script absent.py"),
        (("run", "--", "no-such-program"), "there is no program 'no-such-program'"),
        (("run", "--steps", "0", "--", "sh"), "'0' is neither auto, all nor a number of steps"),
        (("run", "--unit", "tokens", "--", "sh"), "say --samples-per-step"),
        (("run", "--samples-per-step", "-1", "--", "sh"), "takes a number above 0"),
        (("run", "--steps", "5", "quick"), "--steps is for a program"),
        (("init",), "name the program: trainmark init -- python train.py; none is in"),
        (("init", "--", "no-such-program"), "there is no program 'no-such-program'"),
    ],
)
def test_what_cannot_be_meant_is_refused_in_one_sentence(trainmark, tmp_path, words, sentence):
    result = trainmark(*words)
    assert (result.code, result.out) == (2, "")
    assert sentence in result.err and result.err.count("\n") <= 2
    assert list(tmp_path.iterdir()) == []


def test_options_of_the_program_before_the_dashes_are_shown_their_place(trainmark, tmp_path):
    (tmp_path / "train.py").touch()
    result = trainmark("run", "train.py", "--learning-rate", "0.1")
    assert result.code == 2
    assert "trainmark run -- python train.py --learning-rate 0.1" in result.err


def test_a_dry_run_shows_the_line_that_would_run(trainmark, tmp_path):
    (tmp_path / "train.py").touch()
    result = trainmark("run", "train.py", "--dry-run")
    assert result.code == 0, result.err
    assert "train.py" in result.out and "train-1n1g" in result.out


def test_init_writes_a_suite_that_loads_and_never_overwrites(trainmark, tmp_path):
    (tmp_path / "train.py").touch()
    line = ("--", sys.executable, "train.py", "--name", "it's")
    result = trainmark("init", *line)
    assert result.code == 0, result.err
    (case,) = load.load(str(tmp_path / "trainmark.yaml")).cases
    assert case.workload.line == f"{sys.executable} train.py --name 'it'\"'\"'s'"
    assert (case.workload.untouched, case.workload.steps, case.batch_per_device) == (True, "auto", None)
    before = (tmp_path / "trainmark.yaml").read_bytes()
    again = trainmark("init", *line)
    assert again.code == 2 and "trainmark.yaml exists" in again.err
    assert (tmp_path / "trainmark.yaml").read_bytes() == before


def test_every_line_that_init_leaves_as_a_comment_is_valid_when_used(trainmark, tmp_path):
    (tmp_path / "train.py").touch()
    assert trainmark("init").code == 0
    text = (tmp_path / "trainmark.yaml").read_text(encoding="utf-8")
    used = "\n".join(
        line.replace("# ", "", 1)
        if line.lstrip().startswith("# ") and ":" in line and "`" not in line
        else line
        for line in text.splitlines()
    ).replace("One run for each of several settings:", "")
    parsed = yaml.safe_load(used)
    assert {"unit", "samples_per_step", "pattern"} <= set(parsed["workload"]) and len(parsed["cases"]) == 2
    assert len(load.parse(used, "used").cases) == 2
