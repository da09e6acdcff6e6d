"""The PyTorch workload as its tests use it: options as the command line gives them, and real runs of it."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from trainmark.events import Event, Step
from trainmark.events.stream import read
from trainmark.workloads.resnet50.shared import data, program

torch = pytest.importorskip("torch", reason="PyTorch is not installed; pip install 'trainmark[pytorch]'")

from trainmark.workloads.resnet50 import pytorch as model  # noqa: E402
from trainmark.workloads.resnet50 import pytorch as workload  # noqa: E402 - only where torch is

PROGRAM = "trainmark.workloads.resnet50.pytorch"
CPU = torch.device("cpu")
TINY = ("--batch", "2", "--image-size", "32")
HANG_SECONDS = 300  # far above what a run takes; a test that meets it hangs


def asked(*arguments: str):
    """Tiny unless told otherwise: the last of two equal options counts."""
    return program.parse_options([*TINY, *arguments], PROGRAM)


def synthetic_batch(opt, device):
    return workload.place(opt, device, *data.synthetic_batches(opt, 1)[0])


def stream_of(opt):
    """Return the synthetic batches of a training, without its model."""
    training = workload.Training.__new__(workload.Training)
    training.opt, training.device, training.resident = opt, CPU, synthetic_batch(opt, CPU)
    return training.batches()


def small_network() -> torch.nn.Module:
    """A stem, one down-sampling block and a classifier: every kind of layer in a thousandth of the time."""
    torch.manual_seed(0)
    return torch.nn.Sequential(
        model.conv(3, 8, 3, 2),
        model.batch_norm(8),
        model.Bottleneck(8, 8, stride=2),
        torch.nn.AdaptiveAvgPool2d(1),
        torch.nn.Flatten(),
        torch.nn.Linear(32, 1000),
    )


def environment(**more: str) -> dict[str, str]:
    """One thread a process: two cores shared by more threads wait for each other most of the time."""
    return {**os.environ, "OMP_NUM_THREADS": "1", **more}


def run(*arguments: str, stdin: str = "", **variables: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", PROGRAM, *arguments],
        input=stdin,
        capture_output=True,
        text=True,
        env=environment(**variables),
        timeout=HANG_SECONDS,
    )


def events_of_run(folder: Path, *arguments: str, **variables: str) -> list[Event]:
    done = run(*TINY, *arguments, TRAINMARK_EVENTS=str(folder), **variables)
    assert done.returncode == 0, done.stderr
    return list(read(folder / "rank0.jsonl"))


def steps_in(events: Sequence[Event]) -> list[Step]:
    return [event for event in events if isinstance(event, Step)]
