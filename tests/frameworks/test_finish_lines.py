"""Every framework that is installed here, trained on images: it counts, it adds up, it goes on where it was.

All start from the same weights, which lie in a checkpoint that the test writes, at the end of an epoch: the
first thing that a training then does is to evaluate them.
"""

from __future__ import annotations

import functools
import json
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import small_resnet
from trainmark.cli.main import trainmark
from trainmark.events import Event, Mark, RunEnd, RunStart, Step
from trainmark.events.stream import read
from trainmark.launch.agent.ranks import free_ports
from trainmark.launch.job import LOOPBACK, LOOPBACK_INTERFACE, Job, Placement, RankSlot
from trainmark.machine.frameworks.installed import standing
from trainmark.runner import inventory
from trainmark.workloads import registry
from trainmark.workloads.common.checkpoint import Checkpoints, TrainingPosition
from trainmark.workloads.images import jpeg
from trainmark.workloads.resnet50.shared import program, tensors

pytestmark = pytest.mark.usefixtures("installed_environments")

SEVEN = ("pytorch", "jax", "mindspore", "mxnet", "oneflow", "paddle", "tensorflow")
LAYOUT = {"tensorflow": "NHWC"}  # on the CPU; all others train in NCHW there
HANG_SECONDS = 300  # far above what a training takes; a test that meets it hangs
BATCH, IMAGES, VALIDATION = 4, 40, 12
EVERY = 3  # steps between two checkpoints
# The weights from which all start see eight classes only, so that some of the five best are right; this
# brings their logits to the same height, so that the image decides.
LIFT = (19.6, 20.4, 17.2, 25.1, 12.9, 25.3, 6.4, 0.0)
MIXED = {
    "optimizer": "lars",
    "momentum": 0.9,
    "weight_decay": 0.001,
    "label_smoothing": 0.1,
    "schedule": "cosine",
    "rate": 4.0,
    "rate_batch": 2 * BATCH,
    "warmup_epochs": 0.5,
    "epochs": 2,
    "mixup": 0.4,
    "trust": 0.005,
}


@dataclass(frozen=True)
class Ground:
    """What all trainings here have in common; what each framework told is kept."""

    folder: Path
    courses: dict[str, Course] = field(default_factory=dict)


@pytest.fixture(scope="module")
def ground(tmp_path_factory) -> Iterator[Ground]:
    try:
        jpeg.codec("native")  # the one that every environment can have: the pixels are the same then
    except jpeg.CodecMissing as error:
        pytest.skip(f"images cannot be decoded alike in all frameworks: {error}")
    folder = tmp_path_factory.mktemp("ground")
    asked = ["--classes", "4", "--images", str(IMAGES), "--validation", str(VALIDATION), "--size", "64x48"]
    made = CliRunner().invoke(trainmark, ["data", "make", str(folder / "images"), *asked])
    assert made.exit_code == 0, made.output
    small_resnet.copy_code(small_resnet.FOUR_STAGES, folder / "code")
    (folder / "mixed.json").write_text(json.dumps(MIXED))
    with pytest.MonkeyPatch.context() as patch:
        small_resnet.build_here(small_resnet.FOUR_STAGES, patch)
        yield Ground(folder)


def require(name: str) -> str:
    interpreter = inventory.interpreter_of(name)
    if interpreter is None:
        reason = standing(name)[1] or f"`trainmark frameworks install {name}` installs it"
        pytest.skip(f"{name} is not installed: {reason}")
    return interpreter


@functools.cache
def weights() -> dict[str, Any]:
    """From which all start."""
    values = tensors.initial_weights()
    for name, value in values.items():
        if "norm" in name and name.endswith("bias"):
            value *= 0.05  # or their sum over the blocks would drown the image
    weight, bias = values["classifier.weight"], values["classifier.bias"]
    weight[len(LIFT) :], bias[len(LIFT) :] = 0.0, -20.0
    bias[: len(LIFT)] += LIFT
    return values


class Standing:
    """A training that stands at these weights, for `Checkpoints` to save."""

    def tensors(self):
        return dict(weights())

    def momenta(self):
        return {name: 0 * value for name, value in weights().items() if not tensors.is_statistic(name)}

    def rest(self):
        return {}

    def total(self, numbers):
        return numbers


class Started:
    """The ranks of one training as the launcher would start them, from the weights that all start from."""

    def __init__(self, ground: Ground, name: str, folder: Path, ranks: int, *arguments: str) -> None:
        self.arguments = (
            *("--batch", str(BATCH), "--image-size", "32", "--layout", LAYOUT.get(name, "NCHW")),
            *("--data", "images", "--dataset", str(ground.folder / "images"), "--epochs", "2"),
            *("--checkpoints", str(folder / "checkpoints"), "--checkpoint-steps", str(EVERY), *arguments),
        )
        environment = {
            "PYTHONPATH": str(ground.folder / "code"),
            "OMP_NUM_THREADS": "1",
            "TRAINMARK_JPEG": "native",
        }
        command = (require(name), "-m", registry.find("resnet50").module(name), *self.arguments)
        self.job = Job(command, environment, folder, folder, nodes=1, ranks_per_node=ranks)
        self.name, self.steps_per_epoch = name, IMAGES // (BATCH * ranks)
        for made in ("events", "logs"):
            (folder / made).mkdir(parents=True, exist_ok=True)

    def with_weights(self) -> Started:
        """Before the evaluation of the first of two epochs."""
        for rank in reversed(range(self.job.world_size)):  # rank 0 finishes what the others have written
            opt = program.settle_options(program.parse_options(self.arguments, "test"), self.job.world_size)
            opt.rank = rank
            place = TrainingPosition(self.steps_per_epoch, 0, self.steps_per_epoch)
            Checkpoints(program.SPEC, opt, Standing(), self.name).save(place)
        return self

    def processes(self) -> list[subprocess.Popen[bytes]]:
        master, *ports = free_ports(LOOPBACK, 1 + self.job.world_size)
        seats = [RankSlot("localhost", LOOPBACK, LOOPBACK_INTERFACE, tuple(ports))]
        started = []
        for rank in range(self.job.world_size):
            placed = self.job.placed(Placement(self.job, seats, master, "test").of(rank))
            with self.job.log(rank).open("ab") as log:
                environment = {**os.environ, **placed.environment}
                started.append(subprocess.Popen(placed.command, env=environment, stdout=log, stderr=log))
        return started

    def finish(self) -> None:
        """Returns once all ranks have ended well."""
        processes = self.processes()
        try:
            for rank, process in enumerate(processes):
                assert process.wait(HANG_SECONDS) == 0, self.job.log(rank).read_text()
        finally:
            for process in processes:
                process.kill()

    def killed_when(self, is_time: Callable[[], bool]) -> None:
        """SIGKILL to all ranks."""
        processes = self.processes()
        give_up = time.monotonic() + HANG_SECONDS
        try:
            while not is_time():
                for rank, process in enumerate(processes):
                    assert process.poll() is None, self.job.log(rank).read_text()
                assert time.monotonic() < give_up
                time.sleep(0.002)
        finally:
            for process in processes:
                process.kill()
        assert [process.wait() for process in processes] == [-signal.SIGKILL] * len(processes)

    def events(self) -> list[list[Event]]:
        """By each rank."""
        return [list(read(self.job.events(rank))) for rank in range(self.job.world_size)]


def losses(events: Sequence[Event]) -> dict[int, float]:
    return {event.step: event.loss for event in events if isinstance(event, Step)}


def evaluations(events: Sequence[Event]) -> list[dict[str, Any]]:
    marks = [event for event in events if isinstance(event, Mark) and event.kind == "eval"]
    return [mark.facts for mark in marks if mark.facts["state"] == "end"]


@dataclass(frozen=True)
class Course:
    """A training that was killed while it wrote a checkpoint, and started again; what each rank told."""

    before: list[list[Event]]
    after: list[list[Event]]
    went_on_from: int
    steps: int
    saved: list[str]  # the files of the checkpoint that it went on from


def course(ground: Ground, name: str, ranks: int, *arguments: str) -> Course:
    folder = ground.folder / f"{name}-{ranks}"
    checkpoints = folder / "checkpoints"
    started = Started(ground, name, folder, ranks, *arguments)
    epoch = started.steps_per_epoch
    first = (epoch // EVERY + 1) * EVERY
    part, whole = (checkpoints / name.format(first + EVERY) for name in (".step-{:08d}.part", "step-{:08d}"))
    files = [part / f"rank{rank}.npz" for rank in range(ranks)]
    started.with_weights().killed_when(lambda: all(map(Path.exists, files)) or whole.exists())
    before = started.events()
    shutil.rmtree(whole, ignore_errors=True)  # where it was quicker than we
    saved = sorted(file.name for file in (checkpoints / f"step-{first:08d}").iterdir())
    started.finish()
    shutil.rmtree(checkpoints)
    after = [stream[len(early) :] for stream, early in zip(started.events(), before, strict=True)]
    return Course(before, after, first, 2 * epoch, saved)


def mixed(ground: Ground, name: str) -> Course:
    """Two ranks, images mixed, layers at rates of their own."""
    if name not in ground.courses:
        require(name)
        ground.courses[name] = course(ground, name, 2, "--recipe", str(ground.folder / "mixed.json"))
    return ground.courses[name]


def assert_the_same_again(ran: Course) -> None:
    for before, after in zip(ran.before, ran.after, strict=True):
        begin, end = after[0], after[-1]
        assert isinstance(begin, RunStart)
        assert isinstance(end, RunEnd)
        assert begin.facts["resumed_step"] == ran.went_on_from
        assert list(losses(after)) == list(range(ran.went_on_from, ran.steps))
        again = {step: loss for step, loss in losses(before).items() if step >= ran.went_on_from}
        assert again
        assert again == {step: losses(after)[step] for step in again}


@pytest.mark.parametrize("name", SEVEN)
def test_two_ranks_killed_while_they_write_a_checkpoint_go_on_to_the_same_losses(name, ground):
    ran = mixed(ground, name)
    assert_the_same_again(ran)
    assert ran.saved == ["rank0.json", "rank0.npz", "rank1.json", "rank1.npz"]


@pytest.mark.parametrize("name", SEVEN)
def test_two_ranks_count_every_validation_image_once_and_as_the_others_do(name, ground):
    (ours, second), (reference, _) = mixed(ground, name).before, mixed(ground, "pytorch").before
    (seen,) = evaluations(ours)
    assert [seen] == evaluations(second) == evaluations(reference)
    assert seen["samples"] == VALIDATION
    assert 0 < seen["correct5"] < VALIDATION  # the images decide, or this would show little
    assert [facts["samples"] for facts in evaluations(mixed(ground, name).after[0])] == [VALIDATION]


@pytest.mark.parametrize("name", SEVEN)
def test_two_ranks_train_on_mixed_images_at_layers_own_rates_as_the_others_do(name, ground):
    for ours, theirs in zip(mixed(ground, name).before, mixed(ground, "pytorch").before, strict=True):
        first, second = list(losses(theirs).items())[:2]
        assert losses(ours)[first[0]] == pytest.approx(first[1], rel=1e-4)
        # After one step; a batch norm over four numbers makes much of the last digit.
        assert losses(ours)[second[0]] == pytest.approx(second[1], rel=1e-2)


def test_mxnet_goes_on_at_the_rate_that_its_velocities_were_made_at(ground):
    """What it keeps of a step without LARS is more than what the others keep."""
    assert_the_same_again(course(ground, "mxnet", 1))
