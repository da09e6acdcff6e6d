import json
import shutil

import pytest
from sets_by_hand import flip, folder_set, jpeg, positions

from trainmark.data import formats
from trainmark.data.convert import ConvertRequest, convert
from trainmark.data.files import read_index
from trainmark.data.records import Sharded
from trainmark.data.verify import verify

ALL = formats.names()
FLIPS, CUTS = 30, 12


pytestmark = pytest.mark.usefixtures("small_pages")


@pytest.fixture(scope="module")
def sets(tmp_path_factory, small_pages):
    """One of every format, made once; tests mend what they break."""
    root = tmp_path_factory.mktemp("verify")
    folder_set(root / "source")
    for to in ALL:
        convert(ConvertRequest(root / "source", root / to, to))
    for path in (root / "list").rglob("*.JPEG"):  # hard links: damage would reach the source
        content = path.read_bytes()
        path.unlink()
        path.write_bytes(content)
    return root


def files_of(root):
    return sorted(path for path in root.rglob("*") if path.is_file())


def damaged_at(root, path, position):
    """The record that the index has there."""
    for split in ("train", "val"):
        index = read_index(root / split)
        for row, name in zip(index.rows, index.names, strict=True):
            shard = root / split / index.shards[row["shard"]]
            if shard == path and row["begin"] <= position < row["begin"] + row["length"]:
                return name
    return None


def interesting(root, path, seed):
    """Places all over a file, and some in its records: most of a MindRecord file is empty."""
    places = positions(path.stat().st_size, FLIPS, seed)
    for split in ("train", "val"):
        if path.is_relative_to(root / split):
            index = read_index(root / split)
            rows = [row for row in index.rows if root / split / index.shards[row["shard"]] == path]
            places += [int(row["begin"]) + number % int(row["length"]) for number, row in enumerate(rows)]
    return places


@pytest.mark.parametrize("to", ALL)
def test_a_sound_set_is_sound(sets, to):
    verdict = verify(sets / to, 1, True)
    assert verdict.findings == ()
    assert verdict.records == 15


@pytest.mark.parametrize("to", ALL)
def test_every_flipped_byte_is_found_and_its_record_named(sets, to):
    root = sets / to
    shards = [path for path in files_of(root) if _holds_records(root, path)][:4]
    for number, path in enumerate(shards):
        for position in interesting(root, path, number):
            wanted = damaged_at(root, path, position)
            flip(path, position)
            verdict = verify(root, 1, False)
            flip(path, position)
            (finding,) = verdict.findings
            assert finding.file == path.relative_to(root).as_posix()
            assert finding.records == ((wanted,) if wanted else ())
    assert verify(root, 1, False).sound


def _holds_records(root, path):
    return any(
        path == root / split / shard
        for split in ("train", "val")
        for shard in read_index(root / split).shards
    )


@pytest.mark.parametrize("to", ["rec", "mindrecord", "list"])
def test_a_flipped_byte_in_any_other_file_is_found(sets, to):
    root = sets / to
    for number, path in enumerate(path for path in files_of(root) if not _holds_records(root, path)):
        for position in positions(path.stat().st_size, 12, number):
            flip(path, position)
            verdict = verify(root, 1, False)
            flip(path, position)
            assert not verdict.sound, (path, position)
    assert verify(root, 1, False).sound


@pytest.mark.parametrize("to", ALL)
def test_every_truncation_is_found(sets, to, tmp_path):
    root = sets / to
    backup = tmp_path / "kept"
    chosen = [path for path in files_of(root) if path.parent.name != "n01" and "val" not in path.parts]
    for number, path in enumerate(chosen[:8]):
        shutil.copy(path, backup)
        for length in positions(path.stat().st_size, CUTS, number)[::-1]:
            with path.open("r+b") as file:
                file.truncate(length)
            verdict = verify(root, 1, False)
            assert path.relative_to(root).as_posix() in {finding.file for finding in verdict.findings} or (
                path.name in ("checksums.txt", "dataset.json", "shards.txt") and not verdict.sound
            )
        shutil.copy(backup, path)
    assert verify(root, 1, False).sound


def test_records_that_are_cut_off_are_named(sets, tmp_path):
    root = shutil.copytree(sets / "ofrecord", tmp_path / "set")
    index = read_index(root / "train")
    with (root / "train/part-00000").open("r+b") as file:
        file.truncate(int(index.rows[9]["begin"]) + 5)
    (finding,) = verify(root, 1, False).findings
    assert (finding.kind, finding.records) == ("short", index.names[9:])


def test_missing_and_extra_files_are_named(sets, tmp_path):
    root = shutil.copytree(sets / "rec", tmp_path / "set")
    (root / "train/train.lst").unlink()
    (root / "train/more.rec").write_bytes(b"")
    findings = {(finding.file, finding.kind) for finding in verify(root, 1, False).findings}
    assert findings == {("train/train.lst", "missing"), ("train/more.rec", "extra")}


def test_a_damaged_index_does_not_keep_the_damage_from_being_found(sets, tmp_path):
    root = shutil.copytree(sets / "rec", tmp_path / "set")
    (root / "train/index.npy").write_bytes(b"\x93NUMPY nonsense")
    flip(root / "train/train.rec", 300)
    files = {finding.file for finding in verify(root, 1, False).findings}
    assert files == {"train/train.rec", "train/index.npy"}


def test_pictures_that_were_bad_from_the_beginning_are_found_by_decoding(tmp_path):
    source = folder_set(tmp_path / "source")
    content = jpeg(5)
    tables, frame = content.index(b"\xff\xdb"), content.index(b"\xff\xc0")
    (source / "train/n00/lost.JPEG").write_bytes(content[:tables] + content[frame:])
    convert(ConvertRequest(source, tmp_path / "set", "rec"))
    assert verify(tmp_path / "set", 1, False).sound
    (finding,) = verify(tmp_path / "set", 1, True).findings
    assert finding.file == "train/n00/lost.JPEG"
    assert "cannot be decoded" in finding.what


@pytest.mark.parametrize("to", [name for name in ALL if isinstance(formats.named(name), Sharded)])
def test_without_checksums_a_cut_shard_breaks_the_rules_of_its_format(sets, to, tmp_path):
    root = shutil.copytree(sets / to, tmp_path / "set")
    for name in ("dataset.json", "checksums.txt"):
        (root / name).unlink()
    verdict = verify(root, 1, False)
    assert (verdict.sound, verdict.records, verdict.by) == (True, 15, f"the rules of {to}")
    shard = root / "train" / read_index(root / "train").shards[0]
    for length in positions(shard.stat().st_size - 1, 8, 0)[::-1]:
        if to == "webdataset" and length >= shard.stat().st_size - 8000:
            continue  # zeros at the end of a tar file: fewer of them are an end too
        with shard.open("r+b") as file:
            file.truncate(length)
        verdict = verify(root, 1, False)
        assert not verdict.sound or verdict.records < 15, length


def test_tfrecord_finds_every_flipped_byte_by_its_own_checksums(sets, tmp_path):
    root = shutil.copytree(sets / "tfrecord", tmp_path / "set")
    for name in ("dataset.json", "checksums.txt"):
        (root / name).unlink()
    shard = root / "train/train-00000-of-00001"
    for position in positions(shard.stat().st_size, 60, 0):
        flip(shard, position)
        assert not verify(root, 1, False).sound
        flip(shard, position)


def test_the_command_says_one_line_or_names_the_damage(sets, trainmark, tmp_path):
    root = shutil.copytree(sets / "beton", tmp_path / "set")
    result = trainmark("data", "verify", "set", "--workers", "1")
    assert (result.code, result.out) == (0, "set is sound: 9 files with 15 records, by checksums.\n")
    index = read_index(root / "val")
    flip(root / "val/val.beton", int(index.rows[1]["begin"]) + 9)
    result = trainmark("data", "verify", "set", "--workers", "1")
    assert result.code == 1
    assert f"val/val.beton: has damaged records: {index.names[1]}" in result.out
    record = json.loads(trainmark("data", "verify", "set", "--workers", "1", "--json").out)
    assert record["damaged_records"] == [index.names[1]]
    assert not record["sound"]
    assert trainmark("data", "verify", "nowhere").code == 2


@pytest.mark.parametrize("form", [(), ("--json",)])
def test_a_name_that_is_no_utf8_is_shown_with_its_escape(tmp_path, trainmark, form):
    (tmp_path / "checksums.txt").write_bytes(b"0" * 64 + b"  tr\xe8s\x1b[31m.bin\n")
    result = trainmark("data", "verify", str(tmp_path), *form)
    assert (result.code, result.err) == (1, "")
    assert "tr\\udce8s" in result.out
    assert "\x1b" not in result.out
