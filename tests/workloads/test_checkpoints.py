"""Checkpoints under kills, disk errors and damage: the newest whole one is restored, others are named."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from tiny_training import checkpoints, on_ranks

from trainmark.workloads.common.checkpoint import OtherTrainingError, TrainingPosition

FUZZ = Path(__file__).parents[2] / "fuzz" / "checkpoints.py"
EPOCH_ENDS, EVALUATED = TrainingPosition(6, 0, 6), TrainingPosition(6, 1, 0)  # two checkpoints of one step


def save(folder: Path, *places: TrainingPosition, ranks: int = 1) -> None:
    """Save the places in order; the state of the n-th follows from n."""

    def work(own):
        for number, place in enumerate(places, 1):
            own.training.value = number
            assert own.save(place) > 0

    on_ranks(folder, ranks, work)


def restored(folder: Path, ranks: int = 1) -> list[tuple[TrainingPosition, int, list[str]]]:
    """Return the place, the state's number and the names passed over, of each rank."""

    def work(own):
        place = own.restore()
        return place, own.training.value, [skipped["name"] for skipped in own.skipped]

    return on_ranks(folder, ranks, work)


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


@pytest.mark.parametrize("part", ["calls", "errors"])
def test_killed_or_failing_at_every_call_the_last_saved_one_is_restored(part):
    done = subprocess.run([sys.executable, FUZZ, "--quick", "--only", part], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "FIND" not in done.stdout
    assert int(done.stdout.split()[1]) >= 100


def test_the_second_checkpoint_of_a_step_stands_before_the_first_goes(tmp_path):
    save(tmp_path, TrainingPosition(4, 0, 4), EPOCH_ENDS, EVALUATED)
    assert names(tmp_path) == ["step-00000004", "step-00000006.2"]
    assert restored(tmp_path) == [(EVALUATED, 3, [])]


def test_killed_between_the_two_both_are_there_and_the_second_counts(tmp_path):
    save(tmp_path, EPOCH_ENDS)
    first = tmp_path / "step-00000006"
    first.rename(tmp_path / "aside")
    save(tmp_path, EPOCH_ENDS, EVALUATED)
    (tmp_path / "aside").rename(first)
    assert restored(tmp_path) == [(EVALUATED, 2, [])]


def test_what_a_killed_process_left_half_written_or_half_removed_is_cleared(tmp_path):
    save(tmp_path, TrainingPosition(4, 0, 4))
    for leftover in (".step-00000006.part", ".step-00000002.gone"):
        (tmp_path / leftover).mkdir()
        (tmp_path / leftover / "rank0.npz").write_bytes(b"half")
    assert restored(tmp_path) == [(TrainingPosition(4, 0, 4), 1, [])]
    assert names(tmp_path) == ["step-00000004"]


def empty(folder: Path) -> None:
    for file in folder.iterdir():
        file.unlink()


def cut(folder: Path) -> None:
    (folder / "rank1.npz").write_bytes((folder / "rank1.npz").read_bytes()[:-1])


def flip_a_bit(folder: Path) -> None:
    data = bytearray((folder / "rank1.npz").read_bytes())
    data[len(data) // 2] ^= 1
    (folder / "rank1.npz").write_bytes(data)


def flip_a_bit_of_an_old_one(folder: Path) -> None:
    """Of Trainmark 0.1, without records of length and CRC-32."""
    for record in folder.glob("*.json"):
        record.unlink()
    flip_a_bit(folder)


def lose_a_rank(folder: Path) -> None:
    (folder / "rank1.npz").unlink()


@pytest.mark.parametrize("damage", [empty, cut, flip_a_bit, flip_a_bit_of_an_old_one, lose_a_rank])
def test_all_ranks_pass_over_a_checkpoint_that_one_cannot_read(damage, tmp_path, capsys):
    save(tmp_path, TrainingPosition(4, 0, 4), TrainingPosition(8, 1, 2), ranks=2)
    damage(tmp_path / "step-00000008")
    assert restored(tmp_path, ranks=2) == [(TrainingPosition(4, 0, 4), 1, ["step-00000008"])] * 2
    assert capsys.readouterr().err.count("checkpoint step-00000008 is passed over: ") == 2
    assert names(tmp_path) == ["damaged-step-00000008", "step-00000004"]
    save(tmp_path, TrainingPosition(6, 1, 0), ranks=2)
    assert restored(tmp_path, ranks=2) == [(TrainingPosition(6, 1, 0), 1, [])] * 2


def test_a_checkpoint_of_version_0_1_is_restored(tmp_path):
    save(tmp_path, TrainingPosition(4, 0, 4), ranks=2)
    for record in tmp_path.rglob("*.json"):
        record.unlink()
    assert restored(tmp_path, ranks=2) == [(TrainingPosition(4, 0, 4), 1, [])] * 2


def test_with_none_whole_it_begins_anew(tmp_path):
    save(tmp_path, TrainingPosition(4, 0, 4), TrainingPosition(8, 1, 2))
    for folder in tmp_path.iterdir():
        empty(folder)
    assert restored(tmp_path) == [(TrainingPosition(), 0, ["step-00000008", "step-00000004"])]


def test_one_of_another_training_is_an_error_on_every_rank(tmp_path):
    save(tmp_path, TrainingPosition(4, 0, 4))
    with pytest.raises(OtherTrainingError, match=r"step-00000004 is of another training .*move it away"):
        checkpoints(tmp_path, seed=7).restore()


def test_a_failed_save_says_why(tmp_path):
    own = checkpoints(tmp_path / "a file")
    (tmp_path / "a file").write_text("")
    assert own.save(TrainingPosition(4, 0, 4)) is None
    assert own.failure == "Not a directory"
