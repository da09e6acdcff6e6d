"""One's own program on the command line: what is taken for it, and what is refused."""

from __future__ import annotations

import sys

import pytest
import yaml

from trainmark.suite import load
from trainmark.suite.program import name_of, require_script


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
        (("run", "--", "pyhton", "x.py"), "there is no program 'pyhton' here; did you mean 'python'?"),
        (("run", "--", "python", "-u", "x.py"), "there is no script x.py"),
        (("run", "--", "env", "A=1", "python3", "x.py"), "there is no script x.py"),
        (("run", "--", "python", "x.ipynb"), "x.ipynb is a notebook"),
        (("run", "--pattern", "[", "--", "sh"), "--pattern '[' is no regular expression: unterminated"),
        (("run", "--repeats", "0", "--vary", "a=1,2", "--", "sh"), "--repeats 0: 'repeats'"),
        (("forecast", "--", "python", "x.py"), "trainmark run -- python x.py"),
        (("run", "x.ipynb"), "x.ipynb is a notebook"),
        (("run", "x.py", "lr=3"), "behind `--`: trainmark run -- python x.py lr=3"),
        (("explain", "--", "python", "x.py"), "there is no script x.py"),
        (("init", "--", "python", "x.py"), "there is no script x.py"),
        (("run", "--steps", "0", "--", "sh"), "'0' is neither auto, all nor a number of steps"),
        (("run", "--unit", "tokens", "--", "sh"), "say --samples-per-step"),
        (("run", "--", "sh", "x.sh", "\udcff"), r"the argument '\udcff' holds what is no character"),
        (("run", "--pattern", "\udcff", "--", "sh"), r"the argument '\udcff' holds what is no character"),
        (("run", "python", "x.py"), "did you mean `trainmark run -- python x.py`?"),
        (("run", "--steps", "9", "torchrun", "x.py"), "`trainmark run --steps 9 -- torchrun x.py`?"),
        (("explain", "python3", "-m", "x"), "did you mean `trainmark explain -- python3 -m x`?"),
        (("bisect", "bash", "run.sh"), "did you mean `trainmark bisect -- bash run.sh`?"),
        (("run", "--samples-per-step", "-1", "--", "sh"), "takes a number above 0"),
        (("run", "--steps", "5", "quick"), "--steps is for a program"),
        (("fit", "--", "sh"), "trainmark run --vary batch=64,128,256 -- python train.py --batch {batch}"),
        (("init",), "name the program: trainmark init -- python train.py; none is in"),
        (("init", "--", "no-such-program"), "there is no program 'no-such-program'"),
    ],
)
def test_what_cannot_be_meant_is_refused_in_one_sentence(trainmark, tmp_path, words, sentence):
    result = trainmark(*words)
    assert (result.code, result.out) == (2, "")
    assert sentence in result.err and result.err.count("\n") <= 2
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "words, sentence",
    [
        (("train.sh",), "did you mean `trainmark run -- bash train.sh`?"),
        (("go",), "did you mean `trainmark run -- ./go`?"),
        (("--", "train.sh"), "write `bash train.sh`"),
        (("--", "./train.py"), "write `python ./train.py`"),
        (("--", "python", "trian.py"), "there is no script trian.py; did you mean 'train.py'?"),
        (("trian.py",), "did you mean 'train.py'?"),
    ],
)
def test_a_file_that_is_there_is_named_as_it_starts(trainmark, tmp_path, words, sentence):
    for name in ("train.py", "train.sh", "go"):
        (tmp_path / name).write_text("#!/bin/sh\n")
    (tmp_path / "go").chmod(0o755)
    result = trainmark("run", *words)
    assert (result.code, result.out) == (2, "") and sentence in result.err
    assert len(list(tmp_path.iterdir())) == 3


@pytest.mark.parametrize(
    "line",
    ["python -m x", "python -c 1", "python -W x y.py", "sh -c x.py", "env -C b python x.py", "torchrun -m x"],
)
def test_where_the_script_is_not_certain_nothing_is_refused(line):
    require_script(line.split())


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


def test_two_failures_at_the_start_leave_the_other_trials_out_until_the_run_is_resumed(trainmark, tmp_path):
    first = trainmark(
        "run", "--runs", "runs", "--name", "broken", "--repeats", "3", "--", "sh", "-c", "exit 3"
    )
    assert first.code == 1
    assert "2 trials failed and none succeeded, so the others are left out" in first.err
    assert "trainmark run --resume runs/broken" in first.err
    assert trainmark("run", "--resume", "runs/broken").code == 1
    tried = sorted(folder.name for folder in tmp_path.glob("runs/broken/trials/*/0*"))
    assert tried == ["01", "02", "03"]


def test_steps_that_could_not_be_kept_to_are_told(trainmark):
    lines = (
        "import time\nfor i in range(60): time.sleep(0.01);"
        " print(f'iter {i}: loss 2.1, time 10.00ms, mfu 1.00%', flush=True)"
    )
    done = trainmark(
        "run", "--steps", "20", "--warmup", "5", "--repeats", "1", "--", sys.executable, "-c", lines
    )
    assert done.code == 0, done.err
    assert "--steps 20 did not end it: the hooks saw no step" in done.err
