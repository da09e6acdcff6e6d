"""`trainmark read` as a person and a script meet it."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys

import pytest
from click.testing import CliRunner

from trainmark.base.errors import UserError
from trainmark.cli.read import read_command
from trainmark.logs import read
from trainmark.logs.recognition import formats

HEADER = b"num_nodes = 1\ngpu_num_per_node = 8\nbatch_size_per_device = 128\nuse_fp16 = True\n"
LINE = b"train: epoch 0, iter %d, loss: %.4f, top_1: 0.1, top_k: 0.2, samples/s: %.3f %.6f\n"
EVALUATION = b"validation: epoch 0, iter 390, top_1: 0.756, top_k: 0.93\n"
KEYS = [
    "source",
    "format",
    "framework",
    "steps",
    "world_size",
    "batch_per_device",
    "precision",
    "throughput",
    "steps_per_second",
    "final_loss",
    "top1",
    "doubts",
]


def oneflow_log(seconds: float = 0.2, reports: int = 150) -> bytes:
    lines = [
        LINE % (20 * n, 7 - n * 0.01, 1024 / seconds, 1.6e9 + 20 * n * seconds) for n in range(1, reports + 1)
    ]
    return HEADER + b"".join(lines) + EVALUATION


@pytest.fixture
def log(tmp_path):
    path = tmp_path / "train.log"
    path.write_bytes(oneflow_log())
    return path


def trainmark(*arguments, given: bytes | None = None):
    command = [sys.executable, "-m", "trainmark", "read", *map(str, arguments)]
    return subprocess.run(command, input=given, capture_output=True)


def runs(*arguments, given: bytes | None = None, code: int = 0) -> list[dict]:
    done = trainmark(*arguments, "--json", given=given)
    assert done.returncode == code, done.stderr
    return json.loads(done.stdout)["runs"]


def test_json_has_the_keys_that_scripts_rely_on_and_what_the_log_says(log):
    (run,) = runs(log)
    assert list(run) == KEYS
    assert run["source"] == str(log)
    assert (run["format"], run["framework"], run["steps"]) == ("oneflow-cnns", "oneflow", 3000)
    assert (run["world_size"], run["batch_per_device"], run["precision"]) == (8, 128, "amp")
    assert (run["final_loss"], run["top1"], run["doubts"]) == (5.5, 0.756, [])
    throughput = run["throughput"]
    assert throughput["value"] == pytest.approx(5120, rel=1e-4)
    assert throughput["low"] <= throughput["value"] <= throughput["high"]
    assert (throughput["unit"], throughput["scope"]) == ("images/s", "global")


def test_what_the_log_does_not_say_is_null(tmp_path):
    path = tmp_path / "x.log"
    path.write_bytes(
        b"".join(b"train: epoch 0, iter %d, loss: 6.5, samples/s: 288.0\n" % n for n in range(3))
    )
    (run,) = runs(path)
    assert [run[key] for key in ("world_size", "batch_per_device", "precision", "top1")] == [None] * 4
    assert run["throughput"]["low"] is None
    assert [doubt["code"] for doubt in run["doubts"]] == ["window-too-short"]


def test_standard_input_gives_the_same_as_the_file(log):
    (of_file,), (of_input,) = runs(log), runs("-", given=gzip.compress(log.read_bytes()))
    assert of_input == {**of_file, "source": "-"}


def test_people_get_a_table_and_how_sure_the_format_is(log):
    stdout = trainmark(log).stdout.decode()
    assert "5,120" in stdout and "oneflow-cnns" in stdout
    assert "recognised by 150 lines (100% sure)" in stdout


def test_a_copy_is_doubted_on_both_sides(log, tmp_path):
    (tmp_path / "again.log").write_bytes(log.read_bytes())
    for run in runs(tmp_path):
        assert [doubt["code"] for doubt in run["doubts"]] == ["copied-logs"]
        assert {doubt["severity"] for doubt in run["doubts"]} == {"severe"}


def test_one_bad_file_among_many_is_named_and_the_others_are_read(log, tmp_path):
    (tmp_path / "notes.txt").write_text("nothing to see")
    done = trainmark(tmp_path, "--json")
    assert done.returncode == 1
    assert len(json.loads(done.stdout)["runs"]) == 1
    assert (
        b"notes.txt: no known format is recognised; `trainmark read --formats` lists them.\n" in done.stderr
    )


def test_the_known_formats_are_listed_with_what_writes_them():
    done = trainmark("--formats")
    assert done.returncode == 0
    lines = done.stdout.decode().splitlines()
    assert [line.split()[0] for line in lines] == sorted(formats())
    assert all(line.split()[1:] for line in lines)
    assert list(json.loads(trainmark("--formats", "--json").stdout)) == sorted(formats())


def test_nothing_to_read_is_bad_input():
    done = trainmark()
    assert done.returncode == 2
    assert b"name what to read" in done.stderr


@pytest.mark.parametrize(
    ("name", "content", "sentence"),
    [
        ("none.log", None, "there is no such file or folder"),
        ("empty.log", b"", "the file is empty"),
        ("other.log", b"hello\n", "no known format is recognised"),
    ],
)
def test_nothing_that_can_be_read_is_one_sentence_and_exit_code_2(tmp_path, name, content, sentence):
    if content is not None:
        (tmp_path / name).write_bytes(content)
    done = trainmark(tmp_path / name, "--json")
    assert (done.returncode, done.stdout) == (2, b"")
    (line,) = done.stderr.decode().splitlines()
    assert sentence in line


def test_a_named_format_is_used_whatever_the_content(log):
    (run,) = runs(log, "--format", "oneflow-cnns")
    assert run["format"] == "oneflow-cnns"
    stderr = trainmark(log, "--format", "oneflow-cnn").stderr.decode()
    assert "there is no format 'oneflow-cnn'; did you mean 'oneflow-cnns'?" in stderr


def test_a_log_cannot_write_to_the_terminal_through_its_name(tmp_path):
    path = tmp_path / "x\x1b[31m.log"
    path.write_bytes(b"hello\n")
    assert b"\x1b" not in trainmark(path, tmp_path / "none").stderr


def test_a_protocol_is_applied_to_one_path(log):
    done = trainmark(log, log, "--protocol", "dlperf-oneflow")
    assert done.returncode == 2
    assert b"one folder of logs" in done.stderr


def test_what_is_wrong_with_a_rule_on_these_logs_is_said_beside_its_result(log):
    done = trainmark(log, "--protocol", "dlperf-oneflow", "--json")
    assert json.loads(done.stdout)["rows"]
    assert b"! no-baseline" in done.stderr


def copies_of_a_run(count: int) -> str:
    head = "DLL 2020-12-16 11:32:00.000000 - PARAMETER arch : resnet50  batch_size : 128  lr : 0.1\n"
    lines = (
        f"DLL 2020-12-16 11:32:{step:02d}.{step % 7}00000 - Epoch: 0 Iteration: {step}  train.loss : 6.5  "
        f"train.total_ips : {2800 + step % 7}.25 img/s\n"
        for step in range(1, 31)
    )
    return (head + "".join(lines)) * count


def test_many_copies_of_a_run_are_one_finding(tmp_path):
    path = tmp_path / "appended.log"
    path.write_text(copies_of_a_run(300))
    answer = CliRunner().invoke(read_command, [str(path)])
    (finding,) = [line for line in answer.output.splitlines() if line.startswith("copied-logs: ")]
    assert "300 runs" in finding and f"run 1 of {path}" in finding


def test_the_text_about_a_copy_does_not_grow_with_the_copies(tmp_path):
    path = tmp_path / "appended.log"
    lengths = []
    for count in (2, 40):
        path.write_text(copies_of_a_run(count))
        copied_runs = runs(path)
        assert all("copied-logs" in {doubt["code"] for doubt in run["doubts"]} for run in copied_runs)
        lengths.append(len(json.dumps(copied_runs[0])))
    assert lengths[1] - lengths[0] < 10


def test_a_figure_of_the_same_lines_is_worked_out_once(tmp_path, monkeypatch):
    asked = []
    real = read.logged_figure
    monkeypatch.setattr(read, "logged_figure", lambda columns, facts: asked.append(1) or real(columns, facts))
    path = tmp_path / "appended.log"
    path.write_text(copies_of_a_run(20))
    answer = CliRunner().invoke(read_command, [str(path), "--json"])
    assert len(json.loads(answer.output)["runs"]) == 20
    assert len(asked) == 1


BARS = "".join(
    f"Epoch 0:  {step}%|#   | {step}/100 [00:{step // 2:02d}<00:30,  2.00it/s, loss=3.5]\n"
    for step in range(1, 60)
)


def test_steps_are_told_as_steps_and_what_the_user_knows_completes_them(tmp_path):
    path = tmp_path / "bars.log"
    path.write_text(BARS)
    (run,) = runs(path)
    assert run["throughput"]["value"] is None
    assert run["steps_per_second"] == pytest.approx(2)
    (run,) = runs(path, "--batch", "32", "--devices", "4")
    assert run["throughput"]["value"] == pytest.approx(256)
    (run,) = runs(path, "--samples-per-step", "100")
    assert run["throughput"]["value"] == pytest.approx(200)


SETTINGS = """\
title: a trainer of one's own
step: 'step \\d+ took (?P<seconds>[\\d.]+) s'
rate: {unit: images, scope: global, kind: instant}
settings:
"""
OWN_LOG = "".join(f"step {step} took 0.5 s\n" for step in range(40))


def read_with_settings(tmp_path, settings, *options):
    log, form = tmp_path / "train.log", tmp_path / "own.yaml"
    log.write_text(OWN_LOG)
    form.write_text(SETTINGS + "".join(f"  {name}: {value}\n" for name, value in settings.items()))
    return CliRunner().invoke(read_command, [str(log), "--format", str(form), "--json", *options])


def test_step_times_give_samples_a_second_with_what_the_user_knows(tmp_path):
    answer = read_with_settings(tmp_path, {"world_size": 4}, "--batch", "32", "--devices", "4")
    (run,) = json.loads(answer.output)["runs"]
    assert run["throughput"]["value"] == pytest.approx(256)
    assert (run["batch_per_device"], run["world_size"]) == (32, 4)


@pytest.mark.parametrize(
    ("settings", "options", "sentence"),
    [
        (
            {"batch_per_device": 64},
            ("--batch", "32"),
            "--batch says 32, but the log has 64 as the batch",
        ),
        (
            {"world_size": 8},
            ("--devices", "4"),
            "--devices says 4, but the log has 8 as the number",
        ),
        (
            {"batch_per_device": 64, "world_size": 8},
            ("--samples-per-step", "100"),
            "--samples-per-step says 100, but the log has 512 as the images of a step",
        ),
        (
            {"global_batch": 512},
            ("--batch", "60", "--devices", "8"),
            "512 images a step, no multiple of 60",
        ),
    ],
)
def test_what_contradicts_the_log_is_refused(settings, options, sentence, tmp_path):
    answer = read_with_settings(tmp_path, settings, *options)
    assert isinstance(answer.exception, UserError)
    assert sentence in str(answer.exception)
    assert str(answer.exception).startswith(str(tmp_path / "train.log"))


def test_a_step_of_several_batches_contradicts_nothing(tmp_path):
    answer = read_with_settings(tmp_path, {"global_batch": 512}, "--batch", "32", "--devices", "8")
    assert json.loads(answer.output)["runs"][0]["throughput"]["value"] == pytest.approx(1024)


def test_the_table_shows_steps_a_second_by_their_name(tmp_path):
    path = tmp_path / "bars.log"
    path.write_text(BARS)
    answer = CliRunner().invoke(read_command, [str(path)])
    assert "2.000 steps/s" in answer.output and "samples/s" not in answer.output
