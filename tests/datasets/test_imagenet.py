"""`trainmark data imagenet` on small tars of the same build, sound and damaged."""

import json
import subprocess

import pytest
from imagenet_tars import (
    CLASSES,
    PICTURE,
    pictures_of,
    tar_of,
    train_tar,
    validation_lines,
    validation_tar,
)
from pictures_by_hand import animated, deep_png, encoded

from trainmark.data.files import read_dataset, read_index


@pytest.fixture
def unpack(trainmark, tmp_path):
    """Calls the command on these bytes; `…_tar=None` leaves that tar out."""

    def call(train=None, val=None, labels=None, *words, workers=1):
        given = []
        for name, content in (("train.tar", train), ("val.tar", val), ("labels.txt", labels)):
            if content is not None:
                (tmp_path / name).write_bytes(content if isinstance(content, bytes) else content.encode())
        given = ["train.tar" if train else "-", "val.tar" if val else "-", "out"]
        if labels is not None:
            given += ["--val-labels", "labels.txt"]
        result = trainmark("data", "imagenet", *given, "--workers", str(workers), "--json", *words)
        return result.code, json.loads(result.out) if result.out else {}, result.err

    return call


def damaged(record):
    return [note["what"] for note in record["damaged"]]


def half_written(folder):
    return [path for path in folder.rglob("*") if path.name.endswith(".part")]


def test_both_tars_become_class_folders(unpack, tmp_path):
    code, record, _ = unpack(train_tar(), validation_tar(), validation_lines())
    assert (code, record["splits"], record["damaged"]) == (0, {"train": 12, "val": 6}, [])
    assert read_dataset(tmp_path / "out").classes == CLASSES
    content = dict(pictures_of(CLASSES[1]))[f"{CLASSES[1]}_2.JPEG"]
    assert (tmp_path / "out/train" / CLASSES[1] / f"{CLASSES[1]}_2.JPEG").read_bytes() == content
    assert (tmp_path / "out/val" / CLASSES[2] / "ILSVRC2012_val_00000003.JPEG").exists()


def test_the_index_names_every_image_with_its_label(unpack, tmp_path):
    unpack(train_tar(), validation_tar(), validation_lines())
    index = read_index(tmp_path / "out/val")
    assert index.rows["label"].tolist() == [CLASSES.index(name.partition("/")[0]) for name in index.names]


def test_the_checksums_are_what_sha256sum_says(unpack, tmp_path):
    unpack(train_tar())
    assert (
        subprocess.run(["sha256sum", "--check", "--quiet", "checksums.txt"], cwd=tmp_path / "out").returncode
        == 0
    )


def test_several_workers_unpack_the_same(unpack, tmp_path):
    unpack(train_tar())
    alone = (tmp_path / "out/checksums.txt").read_bytes()
    (tmp_path / "out").rename(tmp_path / "alone")
    unpack(train_tar(), workers=2)
    assert (tmp_path / "out/checksums.txt").read_bytes() == alone


def test_a_finished_set_is_left_as_it_is(unpack):
    unpack(train_tar())
    code, record, _ = unpack(train_tar())
    assert (code, record["written"], record["splits"]) == (0, 0, {"train": 12})


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (PICTURE[:-30], "ends before its end mark"),
        (b"<html>404</html>", "is no picture"),
        (b"", "has no bytes"),
        (encoded("JPEG", size=(1, 1)), "has one pixel"),
        (deep_png(), "has more than 8 bits a sample"),
        (animated("GIF"), "has more than one frame"),
    ],
)
def test_a_damaged_picture_is_named_and_the_set_stays_unfinished(unpack, tmp_path, content, reason):
    files = {CLASSES[0]: [*pictures_of(CLASSES[0]), ("bad.JPEG", content)]}
    code, record, _ = unpack(train_tar(files))
    assert code == 1
    assert len(damaged(record)) == 1
    assert damaged(record)[0].startswith(f"{CLASSES[0]}/bad.JPEG ")
    assert reason in damaged(record)[0]
    assert not (tmp_path / "out/dataset.json").exists()


def test_damaged_pictures_are_left_out_on_request_and_remembered(unpack, tmp_path):
    files = {CLASSES[0]: [*pictures_of(CLASSES[0]), ("bad.JPEG", PICTURE[:-30])]}
    unpack(train_tar(files))
    code, record, _ = unpack(train_tar(files), None, None, "--on-bad", "skip")
    assert (code, record["splits"], len(record["damaged"])) == (0, {"train": 4}, 1)
    assert not (tmp_path / "out/train" / CLASSES[0] / "bad.JPEG").exists()
    assert "bad.JPEG" in read_dataset(tmp_path / "out").about["notes"][0]


def test_a_better_tar_finishes_what_a_damaged_one_began(unpack):
    cut = train_tar()[:-12000]
    assert unpack(cut)[0] == 1
    code, record, _ = unpack(train_tar())
    assert (code, record["splits"], record["written"]) == (0, {"train": 12}, 4)


def test_the_png_and_the_cmyk_pictures_of_imagenet_are_kept_and_named(unpack):
    files = {CLASSES[2]: [("a_2933.JPEG", encoded("PNG")), ("b_1.JPEG", encoded("JPEG", "CMYK"))]}
    code, record, _ = unpack(train_tar(files))
    assert (code, record["splits"]) == (0, {"train": 2})
    assert [note["code"] for note in record["kept"]] == ["not-jpeg", "cmyk"]


def test_a_tar_cut_anywhere_is_told_and_nothing_half_written_stays(unpack, tmp_path):
    whole = train_tar({CLASSES[0]: pictures_of(CLASSES[0], 2), CLASSES[1]: pictures_of(CLASSES[1], 1)})
    for cut in range(700, whole.rstrip(b"\0").__len__(), 997):
        code, record, _ = unpack(whole[:cut])
        assert code == 1, cut
        assert record["damaged"], cut
        assert half_written(tmp_path / "out") == []
        for picture in (tmp_path / "out").rglob("*.JPEG"):
            assert picture.read_bytes() in dict(pictures_of(CLASSES[0], 2)).values()


def test_a_bad_header_loses_one_member_and_is_told(unpack):
    whole = bytearray(train_tar({CLASSES[0]: pictures_of(CLASSES[0])}))
    whole[whole.index(b"n01440764_1.JPEG") + 3] ^= 0x40
    code, record, _ = unpack(bytes(whole), None, None, "--on-bad", "skip")
    assert (code, record["splits"]) == (0, {"train": 3})
    assert "no tar header" in damaged(record)[0]
    assert "n01440764_0.JPEG" in damaged(record)[0]


def test_a_bad_header_of_a_class_loses_that_class_and_is_told(unpack):
    whole = bytearray(train_tar())
    whole[whole.index(b"n01443537.tar")] ^= 1
    code, record, _ = unpack(bytes(whole), None, None, "--on-bad", "skip")
    assert (code, record["classes"], record["splits"]) == (0, 2, {"train": 8})
    for name, _ in pictures_of("n01443537"):
        assert any(name in sentence for sentence in damaged(record))


def test_a_name_that_leads_out_of_the_folder_stays_within(unpack, tmp_path):
    unpack(train_tar({CLASSES[0]: [("../../../evil.JPEG", PICTURE)]}))
    assert (tmp_path / "out/train" / CLASSES[0] / "evil.JPEG").exists()
    assert not (tmp_path / "evil.JPEG").exists()


def test_a_picture_that_comes_twice_is_named(unpack):
    code, record, _ = unpack(train_tar({CLASSES[0]: [("a.JPEG", PICTURE), ("a.JPEG", PICTURE)]}))
    assert (code, damaged(record)) == (1, [f"{CLASSES[0]}/a.JPEG comes twice"])


def test_a_class_without_a_picture_is_named(unpack):
    code, record, _ = unpack(train_tar({CLASSES[0]: pictures_of(CLASSES[0]), CLASSES[1]: []}))
    assert (code, damaged(record)) == (1, [f"{CLASSES[1]}.tar has no picture in it"])


def test_a_long_name_is_read_as_gnu_tar_and_pax_write_it(unpack):
    name = "a" * 150 + ".JPEG"
    assert unpack(train_tar({CLASSES[0]: [(name, PICTURE)]}))[1]["splits"] == {"train": 1}


def test_validation_images_without_a_label_are_named(unpack):
    code, record, _ = unpack(None, validation_tar(6), validation_lines(5))
    assert (code, damaged(record)) == (1, ["ILSVRC2012_val_00000006.JPEG has no label"])


def test_a_label_that_is_no_class_of_the_set_is_named(unpack):
    labels = validation_lines().replace(CLASSES[2], "n09999999", 1)
    code, record, _ = unpack(train_tar(), validation_tar(), labels)
    assert code == 1
    assert damaged(record) == [
        "ILSVRC2012_val_00000003.JPEG has the label n09999999, which is no class of this set"
    ]


def test_what_is_no_tar_is_refused_before_anything_is_written(unpack, tmp_path):
    code, _, message = unpack(b"\x1f\x8b" + b"gzip" * 500)
    assert code == 2
    assert "is no tar" in message
    assert not (tmp_path / "out").exists()


def test_a_validation_tar_needs_labels(unpack):
    code, _, message = unpack(None, validation_tar())
    assert (code, "--val-labels" in message) == (2, True)


def test_a_folder_with_something_else_in_it_is_refused_and_left_alone(unpack, tmp_path):
    (tmp_path / "out").mkdir()
    (tmp_path / "out/thesis.txt").write_text("years")
    code, _, message = unpack(train_tar())
    assert (code, "choose a folder" in message) == (2, True)
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["thesis.txt"]


def test_a_tar_without_a_member_leaves_the_set_unfinished(unpack):
    assert unpack(tar_of([("readme.txt", b"hello")]))[0] == 1
