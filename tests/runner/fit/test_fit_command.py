"""The command over a trainer whose memory is known: what it finds, remembers, refuses and how it ends."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from stand_in_trainer import FIXED, PER_IMAGE

from trainmark.cli.fit import fit_command

HERE = Path(__file__).parent
# Any other call than that of the workload is for a real Python.
INTERPRETER = """#!/bin/sh
case "$*" in *trainmark.workloads.resnet50*) exec "{python}" "{trainer}" "$@";; esac
exec "{python}" "$@"
"""
CAP = FIXED + PER_IMAGE * 100


@pytest.fixture
def fit(trainmark, tmp_path, monkeypatch):
    """The command with this trainer, and the batches that have been tried by then."""
    interpreter = tmp_path / "python"
    interpreter.write_text(INTERPRETER.format(python=sys.executable, trainer=HERE / "stand_in_trainer.py"))
    interpreter.chmod(0o755)
    monkeypatch.setenv("TRAINMARK_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("TRIED", str(tmp_path / "tried"))
    return Fit(trainmark, interpreter, tmp_path / "tried")


class Fit:
    def __init__(self, trainmark, interpreter, tried):
        self._trainmark = trainmark
        self.words = ["fit", "--device", "cpu", "--python", str(interpreter)]
        self._tried = tried

    def __call__(self, *words, cap=f"{CAP >> 20}MB"):
        return self._trainmark(*self.words, "--cap", cap, *words)

    def record(self, *words, **options):
        done = self(*words, "--json", **options)
        assert done.code == 0, done.err
        (record,) = json.loads(done.out)["fits"]
        return record

    @property
    def tried(self):
        return [int(line) for line in self._tried.read_text().split()] if self._tried.exists() else []


def test_it_finds_the_largest_batch_and_what_an_image_takes(fit):
    record = fit.record("--step", "8")
    assert (record["largest"], record["does_not_fit"]) == (96, 104)
    assert fit.tried == [8, 16, 32, 64, 128, 96, 112, 104]
    assert record["peak"] == FIXED + PER_IMAGE * 96
    assert (record["fixed"], record["per_image"], record["residual"]) == (FIXED, PER_IMAGE, 0)
    assert record["prediction"]["error"] == 0
    assert (record["version"], record["framework"], record["cap"]) == ("1.2", "pytorch", CAP)


def test_a_second_search_is_answered_from_memory_and_says_so(fit):
    first = fit.record("--step", "32")
    second = fit.record("--step", "32")
    assert fit.tried == [32, 64, 128, 96]
    assert (first["remembered"], second["remembered"]) == (False, True)
    assert second["measured"] == first["measured"]
    assert first["measured"] in fit("--step", "32").out


def test_a_finer_search_uses_what_a_coarser_one_has_tried(fit):
    fit.record("--step", "32")
    assert fit.record("--step", "16")["largest"] == 96
    assert fit.tried == [32, 64, 128, 96, 112]


def test_again_measures_anew(fit):
    fit.record("--most", "32")
    assert not fit.record("--most", "32", "--again")["remembered"]
    assert fit.tried == [32, 32]


@pytest.mark.parametrize("other", [["--precision", "amp"], ["--image-size", "64"], ["--layout", "NHWC"]])
def test_another_setting_is_another_search(fit, other):
    fit.record("--most", "32")
    assert not fit.record("--most", "32", *other)["remembered"]


def test_several_precisions_and_caps_are_searched_one_after_the_other(fit):
    done = fit("--precision", "fp32,amp", "--step", "64", "--json", cap=f"{CAP >> 20}MB,1GB")
    rows = [(each["precision"], each["cap"], each["largest"]) for each in json.loads(done.out)["fits"]]
    assert rows == [("fp32", CAP, 64), ("fp32", 1 << 30, None), ("amp", CAP, 64), ("amp", 1 << 30, None)]
    assert done.code == 1


def test_most_is_not_passed_and_the_table_says_that_no_more_was_tried(fit):
    done = fit("--step", "32", "--most", "70")
    assert fit.tried == [32, 64]
    assert "No larger batch was tried: --most is 70." in done.out


def test_where_nothing_fits_it_says_so_and_leaves_with_1(fit):
    done = fit("--step", "128")
    assert (done.code, fit.tried) == (1, [128])
    assert "not even batch 128 fits" in done.err


def test_another_failure_stops_the_search_and_is_not_taken_for_want_of_memory(fit, monkeypatch):
    monkeypatch.setenv("BREAKS_AT", "64")
    done = fit("--step", "32", "--json")
    assert (done.code, json.loads(done.out)["fits"]) == (1, [])
    assert "not for want of memory" in done.err and "something else is wrong" in done.err
    log = done.err.rpartition("its log is ")[2].strip().rstrip(".")
    assert "something else is wrong" in Path(log).read_text()
    monkeypatch.delenv("BREAKS_AT")
    assert fit.record("--step", "32")["largest"] == 96
    assert fit.tried == [32, 64, 64, 128, 96]


def test_what_was_learned_before_a_signal_is_kept_and_no_process_stays(fit, tmp_path):
    cap = ["--cap", f"{CAP >> 20}MB", "--step", "32", "--json"]
    slow = {**os.environ, "EACH_TAKES": "2"}
    command = [sys.executable, "-m", "trainmark", *fit.words, *cap]
    running = subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=slow)
    assert "batch 32 fits" in running.stderr.readline()
    running.send_signal(signal.SIGTERM)
    errors = running.communicate(timeout=60)[1]
    assert running.returncode == 130 and "goes on from there" in errors
    assert not any(str(tmp_path) in line for line in _command_lines())
    first = fit.tried
    assert fit.record("--step", "32")["largest"] == 96
    assert fit.tried[len(first) :] == [64, 128, 96]


def _command_lines():
    for file in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            yield file.read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue


def test_a_record_that_cannot_be_read_is_as_none(fit, tmp_path):
    fit.record("--most", "32")
    (tmp_path / "home/fit/pytorch.json").write_text('[{"setting": 1')
    assert not fit.record("--most", "32")["remembered"]


@pytest.mark.parametrize(
    ("words", "cap", "phrase"),
    [
        (["--step", "0"], "1GB", "--step 0 leads nowhere"),
        (["--step", "-8"], "1GB", "--step -8 leads nowhere"),
        (["--most", "16"], "1GB", "--most 16 is less than one --step of 32"),
        ([], "900000GB", "--cap 900000GB is no less than the"),
        ([], "many", "'many' is no amount of memory; write 16GB"),
        ([], "16", "'16' is no amount of memory; write 16GB"),
        ([], "0GB", "'0GB' is no amount of memory"),
        (["--precision", "fp23"], "1GB", "there is no precision 'fp23'; did you mean 'fp32'?"),
        (["--framework", "pytroch"], "1GB", "did you mean 'pytorch'?"),
        (["--precision", "bf16"], "1GB", "pytorch refuses bf16 here: bf16 needs another device; use fp32."),
    ],
)
def test_bad_input_is_refused_in_a_sentence_before_anything_is_tried(fit, words, cap, phrase):
    done = fit(*words, cap=cap)
    assert done.code == 2 and phrase in done.err
    assert fit.tried == []


def test_on_the_cpu_a_cap_is_asked_for(fit, trainmark):
    done = trainmark(*fit.words)
    assert done.code == 2 and "add --cap" in done.err


def test_the_example_for_a_processor_tries_three_small_batches_at_most():
    (example,) = [line.split() for line in fit_command.help.splitlines() if "--device cpu" in line]
    options = dict(zip(example[2::2], example[3::2], strict=True))
    assert int(options["--most"]) <= 32
    assert int(options["--most"]) <= 4 * int(options["--step"])
