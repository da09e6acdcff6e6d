import json
import os
import struct
import subprocess
import sys
import time
from dataclasses import replace

import numpy as np
import pytest
from pictures_by_hand import animated, deep_png, encoded
from sets_by_hand import folder_set, jpeg

from trainmark.base.errors import UserError
from trainmark.data import formats
from trainmark.data.convert import ConvertRequest, convert
from trainmark.data.files import read_dataset, read_index
from trainmark.data.records import Sharded
from trainmark.data.verify import verify

ALL = formats.names()
MAGIC = struct.pack("<I", 0xCED7230A)


pytestmark = pytest.mark.usefixtures("small_pages")


@pytest.fixture
def folder(tmp_path):
    return folder_set(tmp_path / "folder")


def pictures(root):
    """Label and bytes of every picture, found as a loader finds them: by the index alone."""
    entries = {}
    for split in read_dataset(root).splits:
        index = read_index(root / split)
        for row, name in zip(index.rows, index.names, strict=True):
            content = (root / split / index.shards[row["shard"]]).read_bytes()
            begin = int(row["offset"])
            entries[f"{split}/{name}"] = (int(row["label"]), content[begin : begin + int(row["size"])])
    return entries


def by_hand(folder):
    return {
        path.relative_to(folder).as_posix(): (int(path.parent.name[1:]), path.read_bytes())
        for path in folder.rglob("*.JPEG")
    }


@pytest.mark.parametrize("to", ALL)
def test_every_picture_is_found_by_the_index_with_its_bytes_untouched(folder, tmp_path, to):
    convert(ConvertRequest(folder, tmp_path / "out", to))
    assert pictures(tmp_path / "out") == by_hand(folder)


@pytest.mark.parametrize("to", ALL)
def test_every_format_is_a_source_too(folder, tmp_path, to):
    convert(ConvertRequest(folder, tmp_path / "first", to))
    convert(ConvertRequest(tmp_path / "first", tmp_path / "second", "tfrecord"))
    assert pictures(tmp_path / "second") == by_hand(folder)


@pytest.mark.parametrize("to", ALL)
def test_a_shard_is_scanned_back_as_it_was_written(folder, tmp_path, to):
    form = formats.named(to)
    if not isinstance(form, Sharded):
        pytest.skip("every picture is a file of its own")
    convert(ConvertRequest(folder, tmp_path / "out", to, shards=2))
    index = read_index(tmp_path / "out/train")
    records = [row for shard in index.shards for row in form.scan(tmp_path / "out/train" / shard)]
    wanted = [tuple(row)[1:6] for row in index.rows.tolist()]
    assert [(one.begin, one.length, one.offset, one.size, one.label) for one in records] == wanted


def test_a_picture_with_the_magic_number_of_recordio_is_still_one_read_away(folder, tmp_path):
    content = jpeg(7)
    comment = b"ab" + MAGIC * 3
    content = content[:2] + b"\xff\xfe" + struct.pack(">H", len(comment) + 2) + comment + content[2:]
    (folder / "train/n00/cut.JPEG").write_bytes(content)
    convert(ConvertRequest(folder, tmp_path / "out", "rec"))
    assert read_index(tmp_path / "out/train").shards == ("train.rec", "train.rec.whole")
    assert pictures(tmp_path / "out")["train/n00/cut.JPEG"] == (0, content)
    scanned = list(formats.named("rec").scan(tmp_path / "out/train/train.rec"))
    (cut,) = [record for record in scanned if record.offset < 0]
    assert formats.named("rec").gather(tmp_path / "out/train/train.rec", cut.begin) == content


def test_training_pictures_are_shuffled_by_the_seed_and_validation_is_not(folder, tmp_path):
    names = {}
    for seed in (0, 1, None):
        convert(ConvertRequest(folder, tmp_path / f"out{seed}", "ofrecord", seed=seed))
        names[seed] = read_index(tmp_path / f"out{seed}/train").names
        assert list(read_index(tmp_path / f"out{seed}/val").names) == sorted(
            path.relative_to(folder / "val").as_posix() for path in (folder / "val").rglob("*.JPEG")
        )
    assert list(names[None]) == sorted(names[0])
    assert len({names[0], names[1], names[None]}) == 3


def test_the_bytes_do_not_depend_on_the_number_of_workers(folder, tmp_path, monkeypatch):
    monkeypatch.setattr("trainmark.data.convert.PICTURES_A_WORKER", 1)
    for workers in (1, 2):
        convert(ConvertRequest(folder, tmp_path / f"out{workers}", "tfrecord", shards=4, workers=workers))
    sums = [(tmp_path / f"out{workers}/checksums.txt").read_text() for workers in (1, 2)]
    assert sums[0] == sums[1]


def test_a_list_is_made_of_hard_links(folder, tmp_path):
    convert(ConvertRequest(folder, tmp_path / "out", "list"))
    lines = (tmp_path / "out/train_list.txt").read_text().splitlines()
    path, label = lines[0].split(" ")
    assert (tmp_path / "out" / path).samefile(folder / path)
    assert int(label) == int(path.split("/")[1][1:])
    assert len(lines) == 12


@pytest.mark.parametrize("to", ["tfrecord", "rec", "mindrecord", "list"])
def test_a_conversion_that_was_stopped_goes_on_and_gives_the_same_bytes(folder, tmp_path, to):
    convert(ConvertRequest(folder, tmp_path / "whole", to, shards=3))
    bad = folder / "train/n02/train1.JPEG"
    content = bad.read_bytes()
    bad.write_bytes(content[:100])
    with pytest.raises(UserError, match="ends before its end mark; mend or remove it"):
        convert(ConvertRequest(folder, tmp_path / "out", to, shards=3))
    assert not (tmp_path / "out/dataset.json").exists()
    bad.write_bytes(content)
    convert(ConvertRequest(folder, tmp_path / "out", to, shards=3))
    whole, out = (
        [
            line
            for line in (tmp_path / name / "checksums.txt").read_text().splitlines()
            if "dataset" not in line
        ]
        for name in ("whole", "out")
    )
    assert sorted(line for line in whole if ".db" not in line) == sorted(
        line for line in out if ".db" not in line
    )
    assert verify(tmp_path / "out", 1, False).sound


def test_a_finished_shard_is_kept_and_a_damaged_one_is_written_again(folder, tmp_path):
    bad = folder / "train/n02/train1.JPEG"
    content = bad.read_bytes()
    bad.write_bytes(b"")
    with pytest.raises(UserError):
        convert(ConvertRequest(folder, tmp_path / "out", "tfrecord", shards=6, seed=None))
    done = sorted((tmp_path / "out/train").glob("train-*-of-00006"))
    assert 2 <= len(done) < 6
    times = {path: path.stat().st_mtime_ns for path in done}
    done[0].write_bytes(b"something else")
    bad.write_bytes(content)
    convert(ConvertRequest(folder, tmp_path / "out", "tfrecord", shards=6, seed=None))
    assert done[0].stat().st_mtime_ns != times[done[0]]
    assert done[1].stat().st_mtime_ns == times[done[1]]
    assert pictures(tmp_path / "out") == by_hand(folder)


def test_killed_in_the_middle_it_goes_on_to_the_same_bytes(folder, tmp_path):
    for number in range(1000):
        os.link(folder / "train/n00/train0.JPEG", folder / f"train/n00/more{number}.JPEG")
    words = [sys.executable, "-m", "trainmark", "data", "convert", str(folder)]
    options = ["--to", "webdataset", "--records-per-shard", "10", "--workers", "2"]
    running = subprocess.Popen([*words, str(tmp_path / "out"), *options])
    while not list(tmp_path.glob("out/train/*.tar")) and running.poll() is None:
        time.sleep(0.001)
    running.kill()
    running.wait()
    for target in ("out", "whole"):
        subprocess.run([*words, str(tmp_path / target), *options], check=True, stdout=subprocess.DEVNULL)
    sums = [(tmp_path / target / "checksums.txt").read_text() for target in ("out", "whole")]
    assert sums[0] == sums[1]
    assert verify(tmp_path / "out", 1, False).sound


def test_nothing_half_written_is_left(folder, tmp_path):
    (folder / "train/n01/train0.JPEG").write_bytes(b"no picture")
    with pytest.raises(UserError, match="is no picture"):
        convert(ConvertRequest(folder, tmp_path / "out", "rec"))
    assert not [path for path in (tmp_path / "out/train").iterdir() if path.is_file()]


def test_the_same_command_again_finds_it_complete(folder, tmp_path):
    convert(ConvertRequest(folder, tmp_path / "out", "rec"))
    assert convert(ConvertRequest(folder, tmp_path / "out", "rec")).already
    with pytest.raises(UserError, match="begun with to = rec, not beton"):
        convert(ConvertRequest(folder, tmp_path / "out", "beton"))


BAD = {
    "truncated": lambda: jpeg(1)[:-50],
    "not-a-picture": lambda: b"hello",
    "empty": lambda: b"",
    "deep": deep_png,
    "animated": lambda: animated("GIF"),
    "one-pixel": lambda: jpeg(1, (1, 1)),
}
ODD = {"cmyk": lambda: jpeg(1, mode="CMYK"), "not-jpeg": lambda: encoded("PNG")}


@pytest.mark.parametrize("kind", BAD)
def test_a_bad_picture_is_named_and_ends_it_or_is_left_out(folder, tmp_path, kind):
    (folder / "train/n01/odd.JPEG").write_bytes(BAD[kind]())
    with pytest.raises(UserError, match=r"train/n01/odd\.JPEG"):
        convert(ConvertRequest(folder, tmp_path / "stop", "tfrecord"))
    outcome = convert(ConvertRequest(folder, tmp_path / "skip", "tfrecord", on_bad="skip"))
    (trouble,) = outcome.troubles
    assert trouble.name == "train/n01/odd.JPEG"
    assert kind in trouble.codes
    assert (outcome.pictures["train"], outcome.written["train"], outcome.skipped) == (13, 12, 1)


@pytest.mark.parametrize("kind", ODD)
def test_an_odd_picture_is_named_and_kept_unless_told_otherwise(folder, tmp_path, kind):
    (folder / "train/n01/odd.JPEG").write_bytes(ODD[kind]())
    outcome = convert(ConvertRequest(folder, tmp_path / "kept", "tfrecord"))
    assert [(one.name, one.tolerated) for one in outcome.troubles] == [("train/n01/odd.JPEG", True)]
    assert outcome.written["train"] == 13
    left = convert(ConvertRequest(folder, tmp_path / "left", "tfrecord", on_bad="skip", keep=frozenset()))
    assert left.skipped == 1
    with pytest.raises(UserError, match="odd"):
        convert(ConvertRequest(folder, tmp_path / "beton", "beton"))


def test_what_is_no_file_is_named_and_never_waited_for(folder, tmp_path):
    os.mkfifo(folder / "train/n00/pipe.JPEG")
    (folder / "train/n00/zero.JPEG").symlink_to("/dev/zero")
    (folder / "train/n00/gone.JPEG").symlink_to("nowhere")
    (folder / "train/n00/inner").mkdir()
    outcome = convert(ConvertRequest(folder, tmp_path / "out", "rec", on_bad="skip"))
    assert sorted((one.name.rpartition("/")[2], *one.codes) for one in outcome.troubles) == [
        ("gone.JPEG", "unreadable"),
        ("inner", "no-file"),
        ("pipe.JPEG", "no-file"),
        ("zero.JPEG", "no-file"),
    ]
    assert outcome.skipped == 4
    assert outcome.pictures["train"] == outcome.written["train"] + 4


def test_folders_that_cannot_be_read_or_hold_nothing_are_named(folder, tmp_path):
    (folder / "train/n03").mkdir()
    (folder / "train/n04").symlink_to("nowhere")
    (folder / "train/stray.JPEG").write_bytes(jpeg(1))
    with pytest.raises(UserError, match="train/n04 is a folder that cannot be read"):
        convert(ConvertRequest(folder, tmp_path / "stop", "rec"))
    outcome = convert(ConvertRequest(folder, tmp_path / "skip", "rec", on_bad="skip"))
    codes = {one.name: one.codes for one in outcome.troubles if one.name.startswith("train")}
    assert codes == {
        "train/n03": ("empty-class",),
        "train/n04": ("unreadable-folder",),
        "train/stray.JPEG": ("label-out-of-range",),
    }
    assert outcome.skipped == 1


def test_labels_out_of_range_are_named(folder, tmp_path):
    convert(ConvertRequest(folder, tmp_path / "list", "list"))
    listed = tmp_path / "list/train_list.txt"
    lines = listed.read_text().splitlines()
    lines[0] = lines[0].rpartition(" ")[0] + " 3"
    lines[1] = lines[1].rpartition(" ")[0] + " -1"
    lines[2] = lines[2].rpartition(" ")[0] + " many"
    listed.write_text("".join(f"{line}\n" for line in lines))
    outcome = convert(ConvertRequest(tmp_path / "list", tmp_path / "out", "rec", on_bad="skip"))
    assert [one.codes for one in outcome.troubles] == [("label-out-of-range",)] * 3
    assert (outcome.pictures["train"], outcome.written["train"]) == (12, 9)


def test_the_same_picture_under_two_classes_is_named(folder, tmp_path):
    (folder / "train/n02/twin.JPEG").write_bytes((folder / "train/n00/train0.JPEG").read_bytes())
    (folder / "train/n01/same.JPEG").write_bytes((folder / "train/n01/train0.JPEG").read_bytes())
    outcome = convert(ConvertRequest(folder, tmp_path / "kept", "webdataset"))
    assert sorted(one.name for one in outcome.troubles) == ["train/n00/train0.JPEG", "train/n02/twin.JPEG"]
    assert outcome.skipped == 0
    strict = ConvertRequest(folder, tmp_path / "left", "webdataset", keep=frozenset(), shards=3)
    with pytest.raises(UserError, match="is the same picture as one of another class"):
        convert(strict)
    outcome = convert(replace(strict, on_bad="skip"))
    assert outcome.skipped == 2
    assert "train/n02/twin.JPEG" not in pictures(tmp_path / "left")
    assert len(pictures(tmp_path / "left")) == 15


def test_names_that_lead_elsewhere_are_not_followed(folder, tmp_path):
    convert(ConvertRequest(folder, tmp_path / "rec", "rec"))
    names = (tmp_path / "rec/train/names.txt").read_text().splitlines()
    names[0] = "../../../evil.JPEG"
    (tmp_path / "rec/train/names.txt").write_text("".join(f"{name}\n" for name in names))
    outcome = convert(ConvertRequest(tmp_path / "rec", tmp_path / "out", "folder", on_bad="skip"))
    assert [one.codes for one in outcome.troubles] == [("name",)]
    assert not list(tmp_path.rglob("evil.JPEG"))


def test_blanks_in_a_name_are_refused_where_the_format_cannot_hold_them(folder, tmp_path):
    (folder / "train/n00/a b.JPEG").write_bytes(jpeg(3))
    assert convert(ConvertRequest(folder, tmp_path / "rec", "rec")).skipped == 0
    with pytest.raises(UserError, match="has a name that the format cannot hold"):
        convert(ConvertRequest(folder, tmp_path / "list", "list"))


def test_class_folders_without_splits_are_training_pictures(folder, tmp_path):
    outcome = convert(ConvertRequest(folder / "train", tmp_path / "out", "tfrecord"))
    assert outcome.written == {"train": 12}


@pytest.mark.parametrize(("records", "shards"), [(1_281_167, 1024), (50_000, 40), (100, 1), (0, 1)])
def test_tfrecord_has_as_many_shards_as_imagenet_in_proportion(records, shards):
    assert formats.named("tfrecord").shard_count("train", records) == shards
    assert formats.named("tfrecord").shard_count("val", 50_000) == 128


def test_the_command_tells_what_it_did(folder, trainmark):
    (folder / "val/n00/bad.JPEG").write_bytes(jpeg(1)[:-9])
    result = trainmark("data", "convert", str(folder), "out", "--to", "tfrecord")
    assert result.code == 2
    assert result.err == (
        "trainmark: val/n00/bad.JPEG ends before its end mark; mend or remove it, or give --on-bad skip.\n"
    )
    result = trainmark(
        "data", "convert", str(folder), "out", "--to", "tfrecord", "--on-bad", "skip", "--json"
    )
    record = json.loads(result.out)
    assert result.code == 0
    assert (record["found"], record["written"], record["skipped"]) == (
        {"train": 12, "val": 4},
        {"train": 12, "val": 3},
        1,
    )
    assert record["pictures"][0]["says"] == "val/n00/bad.JPEG ends before its end mark"


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["nowhere", "out", "--to", "rec"], "nowhere is no folder"),
        (["folder", "out", "--to", "recs"], "there is no format 'recs'; did you mean 'rec'?"),
        (["folder", "folder/out", "--to", "rec"], "lie in each other"),
        (["folder", "folder", "--to", "rec"], "lie in each other"),
        (["folder", "out", "--to", "rec", "--shards", "2", "--records-per-shard", "5"], "not both"),
        (["folder", "out", "--to", "rec", "--keep", "cmy"], "did you mean 'cmyk'?"),
        (["folder/train/n00", "out", "--to", "rec"], "has no class folders"),
    ],
)
def test_bad_input_is_one_sentence_and_touches_nothing(folder, trainmark, tmp_path, words, says):
    result = trainmark("data", "convert", *words)
    assert result.code == 2
    assert says in result.err
    assert result.err.count("\n") == 1
    assert not (tmp_path / "out").exists()


def test_rows_have_the_type_that_loaders_expect(folder, tmp_path):
    convert(ConvertRequest(folder, tmp_path / "out", "beton"))
    rows = np.load(tmp_path / "out/train/index.npy")
    assert rows.dtype.names == ("shard", "begin", "length", "offset", "size", "label", "crc")
    assert rows.dtype.itemsize == 36
