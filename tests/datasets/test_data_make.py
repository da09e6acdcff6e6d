"""`trainmark data make`: the set, its bytes, going on after a stop, refusals."""

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter

import numpy as np
import pytest
from PIL import Image

from trainmark.data.files import RECORD, read_dataset, read_index
from trainmark.data.picture import picture_defects, picture_header

SMALL = ("--classes", "3", "--images", "20", "--size", "64x48", "--difficulty", "easy")


@pytest.fixture
def make(trainmark):
    def call(*words, out="set", options=SMALL):
        result = trainmark("data", "make", out, *options, "--workers", "1", "--json", *words)
        return result.code, json.loads(result.out) if result.out else {}, result.err

    return call


def checksums(folder):
    return (folder / "checksums.txt").read_bytes()


def test_the_set_has_the_layout_that_every_reader_expects(make, tmp_path):
    assert make()[0] == 0
    dataset = read_dataset(tmp_path / "set")
    assert (dataset.format, dataset.splits) == ("folder", {"train": 20, "val": 3})
    assert dataset.classes == ("class0000", "class0001", "class0002")
    index = read_index(tmp_path / "set/train")
    assert index.rows.dtype == RECORD
    assert Counter(index.rows["label"].tolist()) == {0: 7, 1: 7, 2: 6}
    for row, shard, name in zip(index.rows, index.shards, index.names, strict=True):
        assert shard == name
        assert (tmp_path / "set/train" / shard).stat().st_size == row["size"] == row["length"]
        assert dataset.classes[row["label"]] == name.partition("/")[0]


def test_sha256sum_confirms_every_file_and_knows_of_every_file(make, tmp_path):
    make()
    root = tmp_path / "set"
    assert (
        subprocess.run(["sha256sum", "--check", "--quiet", "--strict", "checksums.txt"], cwd=root).returncode
        == 0
    )
    listed = {line.partition("  ")[2] for line in (root / "checksums.txt").read_text().splitlines()}
    there = {str(path.relative_to(root)) for path in root.rglob("*") if path.is_file()}
    assert there - listed == {"checksums.txt"}
    assert listed <= there


def test_every_picture_is_a_sound_jpeg_without_chroma_subsampling(make, tmp_path):
    make()
    for path in (tmp_path / "set").rglob("*.JPEG"):
        assert picture_defects(path.read_bytes()) == []
        with Image.open(path) as picture:
            picture.load()
            assert {sampling[1:3] for sampling in picture.layer} == {(1, 1)}


def test_the_same_arguments_give_the_same_bytes_whatever_the_number_of_workers(make, trainmark, tmp_path):
    make()
    trainmark("data", "make", "other", *SMALL, "--workers", "2")
    assert checksums(tmp_path / "set") == checksums(tmp_path / "other")


@pytest.mark.parametrize("change", [("--seed", "1"), ("--difficulty", "hard")])
def test_other_arguments_give_other_pictures(make, tmp_path, change):
    make()
    make(*change, out="other")
    name = "train/class0000/class0000_train_000000.JPEG"
    assert (tmp_path / "set" / name).read_bytes() != (tmp_path / "other" / name).read_bytes()


def test_a_larger_set_contains_the_smaller_one(make, tmp_path):
    make()
    make("--images", "30", out="larger")
    name = "train/class0001/class0001_train_000005.JPEG"
    assert (tmp_path / "set" / name).read_bytes() == (tmp_path / "larger" / name).read_bytes()


def test_at_full_size_widths_heights_and_bytes_are_as_in_imagenet(make, tmp_path):
    make(options=("--classes", "4", "--images", "160", "--validation", "0"))
    headers, sizes = [], []
    for path in (tmp_path / "set").rglob("*.JPEG"):
        content = path.read_bytes()
        sizes.append(len(content))
        headers.append((picture_header(content).width, picture_header(content).height))
    assert Counter(headers).most_common(1)[0][0] == (500, 375)
    assert {(375, 500), (500, 333)} <= set(headers)
    assert 95_000 < np.mean(sizes) < 125_000
    assert min(sizes) < 70_000 < 160_000 < max(sizes)


def test_a_finished_set_is_left_as_it_is(make):
    make()
    assert make()[1]["drawn"] == 0


def test_what_is_missing_after_a_stop_is_drawn_and_nothing_else(make, tmp_path):
    make()
    root, whole = tmp_path / "set", checksums(tmp_path / "set")
    code = (
        "import sys\nfrom pathlib import Path\n"
        "from trainmark.data import make as making\n"
        "draw = making.draw_chunk\n"
        "def slow(*job):\n    sys.exit(9) if job[3] >= 8 else None\n    return draw(*job)\n"
        "making.draw_chunk = slow\n"
        "from trainmark.cli.main import main\n"
        f"sys.argv = ['trainmark', 'data', 'make', 'stopped', '--workers', '1', *{SMALL!r}]\nmain()\n"
    )
    assert subprocess.run([sys.executable, "-c", code], cwd=tmp_path).returncode == 9
    stopped = tmp_path / "stopped"
    assert not (stopped / "dataset.json").exists()
    (stopped / "train/class0000/.class0000_train_000009.JPEG.77.part").write_bytes(b"half")
    (stopped / "train/class0000/class0000_train_000001.JPEG").write_bytes(b"short")
    record = make(out="stopped")[1]
    # The chunk with the short file is drawn again.
    assert record["drawn"] == record["images"]
    assert checksums(stopped) == whole
    assert {p.name for p in stopped.rglob("*")} == {p.name for p in root.rglob("*")}


def test_killed_at_any_moment_it_goes_on_to_the_same_set(make, tmp_path):
    make()
    arguments = [sys.executable, "-m", "trainmark", "data", "make", "killed", *SMALL, "--workers", "2"]
    killed = tmp_path / "killed"
    process = subprocess.Popen(arguments, cwd=tmp_path, start_new_session=True, stderr=subprocess.DEVNULL)
    while process.poll() is None and not any(killed.rglob("*.JPEG")):
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    process.wait()
    _wait_until_nobody_is_left(process.pid)
    assert make(out="killed")[0] == 0
    assert checksums(killed) == checksums(tmp_path / "set")
    assert not list(killed.rglob("*.part"))


def _wait_until_nobody_is_left(group):
    """The workers of a killed command end by themselves."""
    for _ in range(1000):
        try:
            os.killpg(group, 0)
        except ProcessLookupError:
            return
        time.sleep(0.02)
    pytest.fail("a worker outlived the command")


def test_other_arguments_are_refused_and_the_set_is_left_alone(make, tmp_path):
    make()
    before = checksums(tmp_path / "set")
    code, _, message = make("--seed", "5")
    assert (code, "begun with seed = 0, not 5" in message) == (2, True)
    assert checksums(tmp_path / "set") == before


@pytest.mark.parametrize(
    ("words", "phrase"),
    [
        (("--images", "2"), "at least one a class"),
        (("--validation", "1"), "at least one a class"),
        (("--difficulty", "2"), "not between 0 and 1"),
        (("--difficulty", "nan"), "not between 0 and 1"),
        (("--difficulty", "brutal"), "easy, medium, hard"),
        (("--size", "huge"), "500x375"),
        (("--size", "4x4"), "between 16 and"),
        (("--classes", "1"), "--classes"),
        (("--seed", "-1"), "--seed"),
    ],
)
def test_bad_input_is_one_sentence_and_writes_nothing(make, tmp_path, words, phrase):
    code, _, sentence = make(*words)
    assert (code, phrase in sentence, sentence.count("\n")) == (2, True, 1)
    assert not (tmp_path / "set").exists()


def test_a_folder_with_something_else_in_it_is_refused_and_left_alone(make, tmp_path):
    (tmp_path / "set").mkdir()
    (tmp_path / "set/thesis.txt").write_text("years")
    assert make()[0] == 2
    assert [path.name for path in (tmp_path / "set").iterdir()] == ["thesis.txt"]


def test_a_damaged_plan_of_an_unfinished_set_is_one_sentence(make, tmp_path):
    (tmp_path / "set/.unfinished").mkdir(parents=True)
    (tmp_path / "set/.unfinished/plan.json").write_text("{")
    code, _, message = make()
    assert (code, "is damaged" in message) == (2, True)


def test_mean_colour_does_not_tell_the_class(make, tmp_path):
    make(options=("--classes", "4", "--images", "400", "--validation", "4", "--size", "48x36"))
    index = read_index(tmp_path / "set/train")
    labels = index.rows["label"]
    means = np.array([_mean_colour(tmp_path / "set/train" / name) for name in index.names])
    learned = np.arange(len(labels)) % 2 == 0
    inputs = np.column_stack([means, np.ones(len(means))])
    weights = np.linalg.lstsq(inputs[learned], np.eye(4)[labels[learned]], rcond=None)[0]
    right = ((inputs[~learned] @ weights).argmax(1) == labels[~learned]).mean()
    # Chance is 0.25; with 200 pictures its deviation is 0.03.
    assert right < 0.37


def _mean_colour(path):
    with Image.open(path) as picture:
        return np.asarray(picture.convert("RGB"), dtype=float).mean(axis=(0, 1))
