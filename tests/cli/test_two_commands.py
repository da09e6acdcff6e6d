"""Several command lines in one run: what they are called, what is refused, and what comes of it."""

from __future__ import annotations

import json
import shlex
import sys

import pytest

from trainmark.base.errors import UserError
from trainmark.suite.program import variants

TRAIN = ["python", "train.py"]
PROGRAM = """
import sys, time
pause = float(sys.argv[sys.argv.index("--pause") + 1]) if "--pause" in sys.argv else 0.004
if pause < 0:
    sys.exit("no such pause")
print("step 0", flush=True)
end = time.perf_counter()
for step in range(1, 31):
    end += pause
    time.sleep(max(0.0, end - time.perf_counter()))
    print("step", step, flush=True)
"""
QUICK = ("--pattern", r"^step \d+", "--warmup", "5", "--set", "measure.steps=20", "--name", "ab")


def run(trainmark, folder, *words, program=(sys.executable, "train.py")):
    (folder / "train.py").write_text(PROGRAM)
    return trainmark("run", *QUICK, *words, "--", *program)


@pytest.mark.parametrize(
    "against, names",
    [
        (["python train.py --compile"], ["train", "train-compile"]),
        (["python train.py --lr 0.2"], ["train", "train-lr0.2"]),
        (["python fast.py --lr 3 --compile --mode max"], ["train", "fast-lr3-compile-modemax"]),
        (["OMP_NUM_THREADS=1 python train.py"], ["train", "train-omp-num-threads-1"]),
        (
            ["python3 train.py --compile", "python train.py --compile"],
            ["train", "train-python3-compile", "train-compile"],
        ),
    ],
)
def test_a_command_is_named_after_what_sets_it_apart(against, names):
    assert list(variants(TRAIN, against, ())) == names


def test_commands_of_the_same_words_have_a_number():
    assert list(variants([*TRAIN, "-v"], ["python train.py"], ())) == ["train", "train-2"]


def test_a_value_takes_the_place_that_is_marked_or_comes_last():
    lines = variants([*TRAIN, "opt.lr={lr}"], (), ["lr=0.1,0.2", "--workers=4"])
    assert lines == {
        "train-lr0.1-workers4": [*TRAIN, "opt.lr=0.1", "--workers", "4"],
        "train-lr0.2-workers4": [*TRAIN, "opt.lr=0.2", "--workers", "4"],
    }


@pytest.mark.parametrize(
    "against, vary, sentence",
    [
        (["python train.py"], (), "given twice"),
        (["'"], (), "No closing quotation"),
        ([""], (), "is empty"),
        ((), ["lr"], "names no values"),
        ((), ["lr=0.1,,0.2"], "names no values"),
        ((), ["lr=0.1"], "one value only"),
        ((), ["lr=1,2", "lr=3,4"], "names lr twice"),
        ((), ["a=1,2,3,4,5", "b=1,2,3,4"], "more than 16"),
    ],
)
def test_what_cannot_be_compared_is_refused(against, vary, sentence):
    with pytest.raises(UserError, match=sentence):
        variants(TRAIN, against, vary)


@pytest.mark.parametrize(
    "words, sentence",
    [
        (("run", "--vary", "lr=1,2", "quick"), "--vary is for a program; a suite says it itself"),
        (("run", "--against", "sh x"), "--against is for a program; name it behind `--`"),
        (("run", "--against", "python x.py", "--", "sh"), "there is no script x.py"),
        (("run", "--vary", "lr=1,2", "--against", "sh x", "--", "sh"), "not both"),
        (("run", "--against", "no-such-program x", "--", "sh"), "there is no program 'no-such-program'"),
        (("run", "--fail-below", "0.9", "--", "sh"), "--fail-below is for several commands"),
        (("run", "--wait-quiet", "soon", "--", "sh"), "--wait-quiet"),
    ],
)
def test_options_that_do_not_go_together_leave_nothing_on_disk(trainmark, tmp_path, words, sentence):
    result = trainmark(*words)
    assert (result.code, result.out) == (2, "") and sentence in result.err
    assert list(tmp_path.iterdir()) == []


def test_two_commands_take_turns_until_their_ratio_is_certain(trainmark, tmp_path):
    other = shlex.join([sys.executable, "train.py", "--pause", "0.02"])
    result = run(trainmark, tmp_path, "--against", other, "--fail-below", "0.9")
    assert result.code == 1, result.err
    assert "below 0.9" in result.err and ", certain after " in result.out
    (contrast,) = json.loads((tmp_path / "runs/ab/report.json").read_text())["contrasts"]
    assert (contrast["baseline"], contrast["case"]) == ("train-1n1g", "train-pause0.02-1n1g")
    assert contrast["verdict"] == "slower" and contrast["pairs"] >= 6
    assert all(code in result.err for code in contrast["doubts"])
    assert contrast["low"] <= contrast["ratio"] <= contrast["high"] < 1
    shown = trainmark("report", "ab", "--format", "text").out
    assert contrast["sentence"] in shown and "train-pause0.02" in shown
    assert contrast["sentence"] in (tmp_path / "runs/ab/report.html").read_text()
    for name in ("md", "html"):
        chinese = trainmark("report", "ab", "--format", name, "--lang", "zh").out
        assert "对试验后已确定" in chinese


def test_a_round_that_was_cut_short_is_measured_again(trainmark, tmp_path):
    vary = ("--vary", "pause=0.004,0.006", "--set", "repeats={min: 1, max: 2}")
    first = run(trainmark, tmp_path, *vary)
    assert first.code == 0
    assert "not certain after 2 trials: up to 2 more\n[  3/4]" in first.err
    cases = tmp_path / "runs/ab/trials"
    before = {path.parent.name: path.stat().st_mtime_ns for path in cases.glob("*/02")}
    (cases / "train-pause0.004-1n1g" / "02").rename(tmp_path / "gone")
    resumed = trainmark("run", "--resume", "ab")
    assert resumed.code == 0, resumed.err
    assert "too few pairs (2), 6 or more" in resumed.out
    (aside,) = cases.glob("*/02.unpaired-1")
    assert aside.parent.name == "train-pause0.006-1n1g" and len(before) == 2
    assert len(list(cases.glob("*/02"))) == 2


def test_a_command_that_crashes_leaves_one_sentence_in_place_of_a_ratio(trainmark, tmp_path):
    result = run(trainmark, tmp_path, "--vary", "pause=0.004,-1", "--repeats", "2")
    assert result.code == 1
    assert (
        "train-pause-1 has no ratio to train-pause0.004: train-pause-1 gave no figure (crashed:" in result.out
    )
    assert "no such pause" in result.out
