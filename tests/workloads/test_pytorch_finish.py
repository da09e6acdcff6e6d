"""Training by epochs, for real: evaluation, checkpoints, kill -9, and the finish line."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from pytorch_workload import (
    HANG_SECONDS,
    PROGRAM,
    asked,
    environment,
    run,
    steps_in,
    synthetic_batch,
    torch,
    workload,
)

import image_set
import small_resnet
from trainmark.events import Mark, RunEnd, RunStart
from trainmark.events.stream import read
from trainmark.measure.trace import trace_of
from trainmark.workloads.common import checkpoint, optimizer
from trainmark.workloads.common.refusal import REFUSED
from trainmark.workloads.resnet50.shared import data, program

TRAIN, VAL, BATCH = 24, 7, 4


@pytest.fixture(scope="module", autouse=True)
def small_network(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        code = small_resnet.copy_code(small_resnet.FOUR_STAGES, tmp_path_factory.mktemp("small") / "code")
        patch.setenv("PYTHONPATH", str(code))
        small_resnet.build_here(small_resnet.FOUR_STAGES, patch)
        yield


@pytest.fixture(scope="module")
def images(tmp_path_factory) -> Path:
    return image_set.make(tmp_path_factory.mktemp("data") / "stripes", classes=3, train=TRAIN, val=VAL)


@pytest.fixture(scope="module")
def words(images) -> list[str]:
    return [
        *("--data", "images", "--dataset", str(images), "--image-size", "32", "--batch", str(BATCH)),
        *("--epochs", "2", "--workers", "1", "--checkpoint-steps", "4"),
    ]


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory, words):
    place = tmp_path_factory.mktemp("whole")
    done = run(*words, "--checkpoints", str(place / "checkpoints"), TRAINMARK_EVENTS=str(place))
    assert done.returncode == 0, done.stderr
    return place


def losses(place: Path, rank: int = 0) -> dict[int, set[float]]:
    """Every loss that was ever reported of a step."""
    by_step: dict[int, set[float]] = {}
    for step in steps_in(list(read(place / f"rank{rank}.jsonl"))):
        by_step.setdefault(step.step, set()).add(step.loss)
    return by_step


def evaluations(place: Path) -> list[dict]:
    marks = [event for event in read(place / "rank0.jsonl") if isinstance(event, Mark)]
    return [mark.facts for mark in marks if mark.kind == "eval" and mark.facts["state"] == "end"]


def test_a_training_says_what_it_is_before_it_touches_the_data(uninterrupted):
    start = next(iter(read(uninterrupted / "rank0.jsonl")))
    assert isinstance(start, RunStart)
    expected = {
        "epochs": 2,
        "steps_per_epoch": TRAIN // BATCH,
        "training_samples": TRAIN,
        "validation_samples": VAL,
    }
    assert expected.items() <= start.facts.items()
    assert 0 < start.wall - start.facts["process_started"] < HANG_SECONDS


def test_every_epoch_ends_in_an_evaluation_of_the_whole_set_counted_once(uninterrupted):
    assert [facts["epoch"] for facts in evaluations(uninterrupted)] == [0, 1]
    for facts in evaluations(uninterrupted):
        assert facts["samples"] == VAL
        assert facts["top1"] == facts["correct1"] / VAL
        assert 0 <= facts["correct1"] <= facts["correct5"] <= VAL


def test_a_training_whose_kernels_are_plain_pytorch_says_so_at_its_end(words, uninterrupted, tmp_path):
    fused = ("--engine", "fused", "--layout", "NHWC", "--epochs", "1")
    done = run(*words, *fused, TRAINMARK_EVENTS=str(tmp_path))
    assert done.returncode == 0, done.stderr
    ends = [list(read(place / "rank0.jsonl"))[-1] for place in (tmp_path, uninterrupted)]
    assert ["fallbacks" in end.facts for end in ends] == [True, False]


def test_only_the_latest_checkpoints_are_kept(uninterrupted):
    names = sorted(path.name for path in (uninterrupted / "checkpoints").iterdir())
    assert names == ["step-00000008", "step-00000012"]


@pytest.mark.parametrize("steps", [5, 7])
def test_killed_at_any_step_it_goes_on_to_the_losses_of_a_training_that_was_not(
    steps, words, uninterrupted, tmp_path
):
    words = [*words, "--checkpoints", str(tmp_path / "checkpoints")]
    killed = subprocess.Popen(
        [sys.executable, "-m", PROGRAM, *words], env=environment(TRAINMARK_EVENTS=str(tmp_path))
    )
    deadline = time.monotonic() + HANG_SECONDS
    while len(losses(tmp_path) if (tmp_path / "rank0.jsonl").exists() else {}) < steps:
        assert time.monotonic() < deadline and killed.poll() is None
        time.sleep(0.01)
    killed.send_signal(signal.SIGKILL)
    assert killed.wait() == -signal.SIGKILL
    done = run(*words, TRAINMARK_EVENTS=str(tmp_path))
    assert done.returncode == 0, done.stderr
    starts = [event for event in read(tmp_path / "rank0.jsonl") if isinstance(event, RunStart)]
    assert starts[1].facts["resumed_step"] in (4, 6)
    assert losses(tmp_path) == losses(uninterrupted)  # once or twice, and the same bits
    assert evaluations(tmp_path)[-1] == evaluations(uninterrupted)[-1]


def test_it_stops_when_the_line_is_crossed(words, tmp_path):
    lines = ("--until", "top1=0.01", "--until", "top5=0.01", "--epochs", "3")
    done = run(*words, *lines, TRAINMARK_EVENTS=str(tmp_path))
    assert done.returncode == 0, done.stderr
    *_, end = read(tmp_path / "rank0.jsonl")
    assert isinstance(end, RunEnd)
    assert end.facts["reached"] is True
    assert len(evaluations(tmp_path)) < 3


def test_two_ranks_count_every_image_once_and_go_on_together(words, tmp_path):
    checkpoints, whole, again = (tmp_path / name for name in ("checkpoints", "whole", "again"))
    for folder in (whole, again):
        folder.mkdir()
    words = [*words, "--checkpoints", str(checkpoints)]
    together(words, whole)
    assert [facts["samples"] for facts in evaluations(whole)] == [VAL, VAL]
    assert sorted(path.relative_to(checkpoints).as_posix() for path in checkpoints.rglob("*.npz")) == [
        f"step-0000000{step}/rank{rank}.npz" for step in (3, 4) for rank in (0, 1)
    ]
    shutil.rmtree(checkpoints / "step-00000004")
    together(words, again)
    for rank in (0, 1):
        assert losses(again, rank) == {step: losses(whole, rank)[step] for step in (3, 4, 5)}
    assert evaluations(again) == evaluations(whole)[1:]


def together(words: list[str], events: Path) -> None:
    """Two ranks on this machine."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        meeting = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free.getsockname()[1]), "WORLD_SIZE": "2"}
    ranks = [
        subprocess.Popen(
            [sys.executable, "-m", PROGRAM, *words],
            env=environment(TRAINMARK_EVENTS=str(events), RANK=rank, LOCAL_RANK=rank, **meeting),
        )
        for rank in ("0", "1")
    ]
    assert [rank.wait(HANG_SECONDS) for rank in ranks] == [0, 0]


@pytest.fixture
def small_disk(tmp_path):
    """Room for one checkpoint of 5 MB and a half."""
    mount = ["mount", "-t", "tmpfs", "-o", "size=8m", "tmpfs", str(tmp_path)]
    if os.geteuid() != 0 or subprocess.run(mount, capture_output=True).returncode != 0:
        pytest.skip("mounting a small disk needs root")
    yield tmp_path
    subprocess.run(["umount", "--lazy", str(tmp_path)], check=True)


def training(words, folder: Path, *more: str):
    opt = asked(*words, "--checkpoints", str(folder), *more)
    return opt, workload.Training(opt)


def test_a_full_disk_leaves_the_last_good_checkpoint(words, small_disk):
    opt, begun = training(words, small_disk)
    checkpoints = checkpoint.Checkpoints(program.SPEC, opt, begun, "pytorch")
    assert checkpoints.save(checkpoint.TrainingPosition(4, 0, 4)) > 0
    assert checkpoints.save(checkpoint.TrainingPosition(8, 1, 2)) is None
    assert [path.name for path in small_disk.iterdir()] == ["step-00000004"]
    assert checkpoints.restore() == checkpoint.TrainingPosition(4, 0, 4)


def test_a_checkpoint_of_another_training_is_refused_and_a_damaged_one_passed_over(words, tmp_path, capsys):
    opt, begun = training(words, tmp_path)
    checkpoint.Checkpoints(program.SPEC, opt, begun, "pytorch").save(checkpoint.TrainingPosition(4, 0, 4))
    other = asked(*words, "--checkpoints", str(tmp_path), "--seed", "7")
    with pytest.raises(checkpoint.OtherTrainingError, match="another training"):
        checkpoint.Checkpoints(program.SPEC, other, begun, "pytorch").restore()
    file = tmp_path / "step-00000004" / "rank0.npz"
    file.write_bytes(file.read_bytes()[:-100_000])
    assert (
        checkpoint.Checkpoints(program.SPEC, opt, begun, "pytorch").restore() == checkpoint.TrainingPosition()
    )
    assert "checkpoint step-00000004 is passed over: rank0.npz has" in capsys.readouterr().err


def test_with_no_checkpoint_left_whole_it_begins_anew_in_the_same_record(words, uninterrupted, tmp_path):
    checkpoints = tmp_path / "checkpoints"
    for name in ("step-00000004", "step-00000006"):
        (checkpoints / name).mkdir(parents=True)
    (checkpoints / "step-00000006" / "rank0.npz").write_bytes(b"PK cut off")
    text = (uninterrupted / "rank0.jsonl").read_text()
    (tmp_path / "rank0.jsonl").write_text(text[: text.index('"step":7')])  # torn, as a full disk leaves it
    shorter = ("--epochs", "1", "--checkpoints", str(checkpoints))
    done = run(*words, *shorter, TRAINMARK_EVENTS=str(tmp_path))
    assert done.returncode == 0, done.stderr
    first, second = (event for event in read(tmp_path / "rank0.jsonl") if isinstance(event, RunStart))
    assert "checkpoints_skipped" not in first.facts
    assert second.facts["resumed_step"] == 0
    skipped = second.facts["checkpoints_skipped"]
    assert [one["name"] for one in skipped] == ["step-00000006", "step-00000004"]
    assert all(f"{one['name']} is passed over: {one['reason']}" in done.stderr for one in skipped)
    assert len(trace_of(read(tmp_path / "rank0.jsonl")).ends) == TRAIN // BATCH


def test_evaluation_goes_by_the_running_statistics_and_leaves_all_as_it_was(words, tmp_path):
    opt, begun = training(words, tmp_path)
    before = begun.tensors()
    fed = data.ImageFeed(opt).open(begun)
    batches = [(images.clone(), labels) for images, labels in fed.evaluation()]
    fed.close()
    assert sum(int((labels >= 0).sum()) for _, labels in batches) == VAL
    counts = np.sum([begun.evaluate(*batch)() for batch in batches], axis=0)
    begun.plain.eval()
    with torch.no_grad():
        chosen = torch.cat([begun.plain(images).argmax(1) for images, _ in batches])
    assert counts[0] == (chosen == torch.cat([labels for _, labels in batches])).sum()
    assert all(np.array_equal(value, before[name]) for name, value in begun.tensors().items())


def test_mixup_takes_the_rest_from_the_other_end_of_the_batch(words):
    opt = asked("--recipe", "ngc-250")
    step = workload.Step(opt, workload.build_model(opt, torch.device("cpu")), torch.device("cpu"))
    images, labels = synthetic_batch(opt, torch.device("cpu"))
    step.lam.fill_(0.75)
    mixed = step.mixup_loss(images, labels)
    step.lam.fill_(0.25)
    torch.testing.assert_close(step.mixup_loss(images.flip(0), labels.flip(0)), mixed)
    step.lam.fill_(1.0)
    torch.testing.assert_close(step.mixup_loss(images, labels), step.loss(images, labels))


def test_the_mixing_coefficient_follows_from_seed_and_step_alone():
    alpha = asked("--recipe", "ngc-250").recipe.mixup
    drawn = [optimizer.mixup_coefficient(alpha, 7, step) for step in range(200)]
    assert drawn == [optimizer.mixup_coefficient(alpha, 7, step) for step in range(200)]
    assert drawn[0] != optimizer.mixup_coefficient(alpha, 8, 0)
    assert 0.3 < np.mean(drawn) < 0.7
    assert np.mean([0.1 < lam < 0.9 for lam in drawn]) < 0.5  # beta(0.2, 0.2) keeps to the ends


def test_lars_steps_are_those_worked_out_by_hand(tmp_path):
    opt = asked("--recipe", lars(tmp_path))
    cpu = torch.device("cpu")
    step = workload.Step(opt, workload.build_model(opt, cpu), cpu)
    weights = [parameter.detach().double().clone() for parameter in step.model.parameters()]
    momenta = [torch.zeros_like(each) for each in weights]
    batch = synthetic_batch(opt, cpu)
    for rate in (0.5, 0.25):
        step.rate.fill_(rate)
        gradients = gradients_of(step, batch)
        step(*batch)
        for weight, momentum, gradient in zip(weights, momenta, gradients, strict=True):
            if weight.ndim > 1:
                length = gradient.norm() + 5e-5 * weight.norm()
                gradient = 0.001 * weight.norm() / length * (gradient + 5e-5 * weight)
            momentum.mul_(0.9).add_(rate * gradient)
            weight.sub_(momentum)
    for weight, parameter in zip(weights, step.model.parameters(), strict=True):
        torch.testing.assert_close(parameter.detach(), weight.float(), rtol=1e-4, atol=1e-6)


def gradients_of(step, batch):
    """Of the loss alone, before anything is made of them; batch norm's memory is put back."""
    buffers = {name: value.clone() for name, value in step.model.named_buffers()}
    gradients = torch.autograd.grad(step.loss(*batch), list(step.model.parameters()))
    step.model.load_state_dict(buffers, strict=False)
    return [gradient.double() for gradient in gradients]


def lars(folder: Path) -> str:
    (folder / "lars.json").write_text(
        '{"optimizer": "lars", "momentum": 0.9, "weight_decay": 5e-05, "label_smoothing": 0.1, "rate": 7.4,'
        ' "schedule": "polynomial", "rate_batch": 2, "warmup_epochs": 2, "epochs": 37, "trust": 0.001}'
    )
    return str(folder / "lars.json")


@pytest.fixture
def refused(monkeypatch, capsys):
    """The sentence with which the program refuses these options; it is not started anew for each."""

    def refuse(*words: str) -> str:
        built = []
        monkeypatch.setattr(sys, "argv", [PROGRAM, *words])
        with pytest.raises(SystemExit) as ended:
            program.main(workload.framework, built.append)
        assert (ended.value.code, built) == (REFUSED, [])
        return capsys.readouterr().err

    return refuse


@pytest.mark.parametrize(
    ("more", "why"),
    [
        (("--data", "synthetic", "--epochs", "2"), "epochs and finish lines are for images"),
        (("--data", "images"), "needs a dataset"),
        (("--data", "images", "--dataset", "/nowhere"), "/nowhere does not exist"),
        (("--data", "images", "--dataset", "."), "has no dataset.json"),
        (("--recipe", "mlperf"), "mlperf is defined at global batches"),
        (("--recipe", "no-such"), "there is no recipe 'no-such'"),
    ],
)
def test_what_cannot_be_had_is_refused_before_anything_starts(more, why, refused):
    assert why in refused(*more)


def test_a_batch_larger_than_the_set_is_refused(images, refused):
    sentence = refused("--data", "images", "--dataset", str(images), "--batch", "32")
    assert "has 24 images and a step takes 32" in sentence


def test_a_recipe_that_crops_less_is_for_our_own_loader(images, tmp_path, refused):
    text = '{"optimizer": "sgd", "momentum": 0.9, "weight_decay": 0, "label_smoothing": 0, "rate": 0.1,'
    text += ' "schedule": "cosine", "rate_batch": 2, "warmup_epochs": 1, "epochs": 2, "least_area": 0.5}'
    (tmp_path / "mild.json").write_text(text)
    asked = ["--data", "images", "--dataset", str(images), "--recipe", str(tmp_path / "mild.json")]
    sentence = refused(*asked, "--loader", "own")
    assert "crops from 0.5 of an image on, not from 0.08, which only loader: host does" in sentence
