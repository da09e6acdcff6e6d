"""`trainmark run -- PROGRAM`: programs that know nothing of us, started as their users start them."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
BATCHES_PER_EPOCH = 84 // 8
STEPS = 6 * (BATCHES_PER_EPOCH // 2)
torch = pytest.importorskip("torch")


def run(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "trainmark", "run", "--repeats", "1", "--runs", "runs", *words]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True)


def events(folder: Path, name: str) -> list[dict]:
    (stream,) = (folder / "runs" / name).glob("trials/*/01/events/rank0.jsonl")
    return [json.loads(line) for line in stream.read_text(encoding="utf-8").splitlines()]


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """One run of the adversarial trainer to its own end."""
    folder = tmp_path_factory.mktemp("untouched")
    shutil.copy(HERE / "adversarial_trainer.py", folder)
    done = run(
        folder,
        "--steps",
        "all",
        "--warmup",
        "2",
        "--name",
        "all",
        "--",
        sys.executable,
        "adversarial_trainer.py",
    )
    assert done.returncode == 0, done.stderr
    return folder


def test_optimizers_in_turn_make_one_step_and_accumulated_batches_count_together(trained):
    steps = [event for event in events(trained, "all") if event["event"] == "step"]
    assert len(steps) == STEPS
    assert {step["samples"] for step in steps[1:]} == {16}


def test_the_raw_stream_has_the_batches_of_each_step(trained):
    (stream,) = (trained / "runs/all").glob("trials/*/01/events/observed-pytorch-rank0.jsonl")
    steps = [
        line for line in map(json.loads, stream.read_text(encoding="utf-8").splitlines()) if "loads" in line
    ]
    assert [step["loads"][0][1:3] for step in steps[1:5]] == [[2, 16]] * 4


def test_an_evaluation_between_steps_is_a_pause(trained):
    marks = [event["facts"]["state"] for event in events(trained, "all") if event["event"] == "eval"]
    assert marks == ["begin", "end"] * 5  # the last one has no step behind it


def test_the_start_says_how_steps_and_samples_were_seen(trained):
    facts = events(trained, "all")[0]["facts"]
    assert facts["source"] == "PyTorch optimizer hook"
    assert facts["samples"] == "counted in the batches of the data loader"
    assert (facts["framework"], facts["clock"]) == ("pytorch", "host")


def test_a_watched_program_computes_the_same_bit_for_bit(trained):
    alone = subprocess.run(
        [sys.executable, "adversarial_trainer.py"], cwd=trained, capture_output=True, text=True, check=True
    )
    (log,) = (trained / "runs/all").glob("trials/*/01/logs/rank0.log")
    assert log.read_text(encoding="utf-8") == alone.stdout


ENDLESS = """
import atexit, sys, torch
model = torch.nn.Linear(8, 8)
optimizer = torch.optim.SGD(model.parameters(), 0.1)
atexit.register(print, "left in order")
print("RANK" in __import__("os").environ)
while True:
    try:
        model(torch.randn(4, 8)).sum().backward()
        optimizer.step()
    except BaseException:
        print("refused once")
        {again}
"""


def printed_by(folder: Path, name: str) -> list[str]:
    (log,) = (folder / "runs" / name).glob("trials/*/01/logs/rank0.log")
    return log.read_text(encoding="utf-8").splitlines()


def test_a_program_without_end_is_ended_after_the_steps_asked_for(tmp_path):
    (tmp_path / "train.py").write_text(ENDLESS.format(again="raise"), encoding="utf-8")
    samples = ("--samples-per-step", "512", "--unit", "tokens")
    limits = ("--steps", "30", "--warmup", "5", "--name", "endless")
    done = run(tmp_path, *samples, *limits, "--", sys.executable, "train.py")
    assert done.returncode == 0, done.stderr
    assert "tokens/s" in done.stdout
    start, *rest = events(tmp_path, "endless")
    assert (start["unit"], start["scope"]) == ("tokens", "global")
    assert [event["samples"] for event in rest if event["event"] == "step"] == [512] * 35
    # No variable of a rank, which would turn on distributed training.
    assert printed_by(tmp_path, "endless") == ["False", "refused once", "left in order"]
    # A forecast starts from the samples and the weights that were seen.
    assert start["facts"]["parameters"] == 8 * 8 + 8
    forecast = [sys.executable, "-m", "trainmark", "forecast", "endless", "--to", "1n2g", "--json"]
    (case,) = json.loads(subprocess.run(forecast, cwd=tmp_path, capture_output=True, check=True).stdout)
    assert case["measured"]["1n1g"] > 0 and case["forecasts"][0]["topology"] == "1n2g"


def test_a_program_that_catches_everything_is_ended_all_the_same(tmp_path):
    (tmp_path / "train.py").write_text(ENDLESS.format(again="pass"), encoding="utf-8")
    done = run(
        tmp_path, "--steps", "30", "--warmup", "5", "--name", "endless", "--", sys.executable, "train.py"
    )
    assert done.returncode == 0, done.stderr
    assert "steps/s" in done.stdout  # no data loader: samples are not guessed
    assert set(printed_by(tmp_path, "endless")) == {"False", "refused once"}


def test_a_command_that_sets_pythonpath_is_watched_all_the_same(tmp_path, monkeypatch):
    (tmp_path / "train.py").write_text(ENDLESS.format(again="raise"), encoding="utf-8")
    python = Path(sys.executable)
    monkeypatch.setenv("PATH", f"{python.parent}:{os.environ['PATH']}")
    line = f"PYTHONPATH=src {python.name} train.py"
    done = run(tmp_path, "--steps", "30", "--warmup", "5", "--name", "lost", "--", "sh", "-c", line)
    assert done.returncode == 0, done.stderr
    assert len([event for event in events(tmp_path, "lost") if event["event"] == "step"]) == 35


# The ranks that the starter makes fork once more, as some launchers do.
TWO_RANKS = """
import os, sys, torch, torch.distributed as dist
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset
if child := os.fork():
    sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
dist.init_process_group("gloo")
model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(8, 8))
optimizer = torch.optim.SGD(model.parameters(), 0.1)
rows = TensorDataset(torch.randn(64, 8))
while True:
    for (row,) in DataLoader(rows, batch_size=4, sampler=DistributedSampler(rows)):
        model(row).sum().backward()
        optimizer.step()
"""


def test_ranks_that_a_starter_makes_are_all_counted_and_end_together(tmp_path):
    (tmp_path / "train.py").write_text(TWO_RANKS, encoding="utf-8")
    starter = (sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2", "train.py")
    done = run(tmp_path, "--steps", "20", "--name", "ranks", "--json", "--", *starter)
    assert done.returncode == 0, done.stderr
    (result,) = json.loads(done.stdout)["results"]
    assert (result["nodes"], result["devices_per_node"]) == (1, 2)
    assert result["throughput"]["unit"] == "samples/s"
    (folder,) = (tmp_path / "runs/ranks").glob("trials/*/01/events")
    counts = [path.read_text(encoding="utf-8").count('"step"') for path in sorted(folder.glob("rank*.jsonl"))]
    assert counts[0] == counts[1] > 0
    # The name that the report has for it leads to the trial too, and no speed-up is asked of a single case.
    show = [sys.executable, "-m", "trainmark", "show", "--runs", "runs", "ranks"]
    shown = [
        subprocess.run([*show, *more], cwd=tmp_path, capture_output=True, text=True, check=True).stdout
        for more in ([], ["train-1n2g/01"])
    ]
    assert "train  1n2g" in shown[0] and "n/a" not in shown[0]
    assert "train-1n1g/01" in shown[1]


def test_a_program_that_shows_no_step_is_invalid_and_says_what_helps(tmp_path):
    done = run(tmp_path, "--name", "silent", "--", "sh", "-c", "echo done")
    assert done.returncode == 1
    assert "no step was seen" in done.stderr and "--pattern" in done.stderr


def test_lines_that_match_a_pattern_are_steps(tmp_path):
    line = "i=0; while [ $i -lt 60 ]; do echo step $i; sleep 0.01; i=$((i+1)); done"
    done = run(tmp_path, "--pattern", "^step", "--name", "printed", "--", "sh", "-c", line)
    assert done.returncode == 0, done.stderr
    start = events(tmp_path, "printed")[0]
    assert start["facts"]["source"] == "lines that match the pattern"
    assert start["unit"] == "steps"
