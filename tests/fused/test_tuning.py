"""Which tile is chosen, what is remembered of it, and what is said where none fits."""

from __future__ import annotations

import contextlib
from types import SimpleNamespace

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed; trainmark frameworks install pytorch")

TILES = [(64, 4), (128, 8), (32, 2)]
TOOK = {(64, 4): 3.0, (128, 8): 1.0, (32, 2): 2.0, "fused": 5.0, "apart": 7.0}
CUDA = SimpleNamespace(type="cuda")


@pytest.fixture
def tuning(kernels, monkeypatch):
    """The tuner as on a GPU; each candidate takes the time that is written down for it."""
    from trainmark.workloads.common import kernel_tuning as tuning

    monkeypatch.setattr(torch.cuda, "get_device_name", lambda device: "A GPU")
    monkeypatch.setattr(torch.cuda, "device", lambda device: contextlib.nullcontext())
    monkeypatch.setattr(tuning, "milliseconds", lambda work: TOOK[work()])
    return tuning


class Launches:
    """What was launched; what does not fit refuses."""

    def __init__(self, tuning, unfit=()):
        self.error, self.unfit, self.seen = tuning.NotFittingError, unfit, []

    def __call__(self, candidate):
        self.seen.append(candidate)
        if candidate in self.unfit:
            raise self.error
        return candidate


def test_the_fastest_is_chosen_and_remembered_on_disk(tuning, tmp_path):
    launches = Launches(tuning)
    assert tuning.Tuner(tmp_path).choose("join", (64, 256), TILES, launches, CUDA) == (128, 8)
    assert set(launches.seen) == set(TILES)
    again = Launches(tuning)
    assert tuple(tuning.Tuner(tmp_path).choose("join", (64, 256), TILES, again, CUDA)) == (128, 8)
    assert not again.seen


def test_another_shape_or_other_tiles_are_tried_anew(tuning, tmp_path):
    tuner = tuning.Tuner(tmp_path)
    tuner.choose("join", (64, 256), TILES, Launches(tuning), CUDA)
    for key, tiles in (((64, 512), TILES), ((64, 256), TILES[::2])):
        launches = Launches(tuning)
        tuner.choose("join", key, tiles, launches, CUDA)
        assert launches.seen


def test_what_does_not_fit_is_passed_over(tuning, tmp_path):
    launches = Launches(tuning, unfit=[(128, 8)])
    assert tuning.Tuner(tmp_path).choose("join", (64, 256), TILES, launches, CUDA) == (32, 2)
    with pytest.raises(tuning.NotFittingError):
        tuning.Tuner(tmp_path).choose("join", (64, 512), TILES, Launches(tuning, unfit=TILES), CUDA)


def test_a_layer_left_to_pytorch_is_said_once_and_again_by_the_next_process(tuning, tmp_path, capsys):
    for _ in range(2):
        tuner = tuning.Tuner(tmp_path)
        for _ in range(2):
            launches = Launches(tuning, unfit=["fused"])
            way = tuner.choose("join_way", (64, 256, torch.float16), ["fused", "apart"], launches, CUDA)
            assert way == "apart"
        message = "no tile of join_way fits this device at 64 × 256: apart"
        assert capsys.readouterr().err == message + "\n"
        assert tuner.fallbacks() == [message]


def test_a_slow_kernel_is_no_news(tuning, tmp_path, capsys, monkeypatch):
    monkeypatch.setitem(TOOK, "fused", 9.0)
    tuner = tuning.Tuner(tmp_path)
    assert tuner.choose("join_way", (1,), ["fused", "apart"], Launches(tuning), CUDA) == "apart"
    assert not capsys.readouterr().err
    assert not tuner.fallbacks()


def test_a_folder_that_cannot_be_written_costs_only_time(tuning, tmp_path):
    (tmp_path / "file").touch()
    assert tuning.Tuner(tmp_path / "file").choose("join", (1,), TILES, Launches(tuning), CUDA) == (128, 8)


@pytest.mark.parametrize(
    ("registers", "shared", "warps", "programs"),
    [
        (128, 0, 4, 4),  # by registers: 65,536 / (128 · 128)
        (129, 0, 4, 3),  # which are given by eights
        (32, 100_000, 4, 2),  # by shared memory
        (16, 0, 8, 8),  # by threads
        (255, 232_000, 16, 1),  # never none
    ],
)
def test_as_many_programs_walk_as_a_multiprocessor_holds(kernels, registers, shared, warps, programs):
    from trainmark.workloads.resnet50.fused.tiles import _programs_per_multiprocessor

    compiled = SimpleNamespace(n_regs=registers, metadata=SimpleNamespace(shared=shared))
    device = SimpleNamespace(
        regs_per_multiprocessor=65_536,
        shared_memory_per_multiprocessor=233_472,
        max_threads_per_multi_processor=2_048,
    )
    assert _programs_per_multiprocessor(compiled, warps, device) == programs
