import json

import pytest
from sets_by_hand import folder_set

from trainmark.base.errors import UserError
from trainmark.data.convert import ConvertRequest, convert
from trainmark.data.files import read_dataset, read_index
from trainmark.data.indexing import index_set
from trainmark.data.verify import verify

OURS = ("dataset.json", "checksums.txt", "*/index.npy", "*/names.txt", "*/shards.txt")


pytestmark = pytest.mark.usefixtures("small_pages")


@pytest.fixture
def foreign(tmp_path):
    """A set of ours, without the files that only ours have."""

    def made(to, shards=2):
        source = folder_set(tmp_path / "source")
        convert(ConvertRequest(source, tmp_path / "set", to, shards=shards))
        before = read_index(tmp_path / "set/train")
        rows, names, shard_names = before.rows.tolist(), before.names, before.shards
        for pattern in OURS:
            for path in (tmp_path / "set").glob(pattern):
                path.unlink()
        return tmp_path / "set", rows, names, shard_names

    return made


@pytest.mark.parametrize("to", ["rec", "tfrecord", "ofrecord", "webdataset", "mindrecord", "list"])
def test_the_index_of_a_foreign_set_is_the_one_that_converting_makes(foreign, to):
    root, rows, names, shards = foreign(to)
    dataset = index_set(root, 1, None)
    index = read_index(root / "train")
    assert (dataset.format, dict(dataset.splits)) == (to, {"train": 12, "val": 3})
    assert dataset.classes == ("n00", "n01", "n02") if to != "rec" else len(dataset.classes) == 3
    assert index.rows.tolist() == rows
    assert index.shards == shards
    assert [name.rpartition(".")[0] for name in index.names] == [name.rpartition(".")[0] for name in names]
    assert verify(root, 1, True).sound


def test_class_folders_get_an_index_where_they_are(tmp_path):
    source = folder_set(tmp_path / "source")
    index_set(source, 1, None)
    assert read_dataset(source).classes == ("n00", "n01", "n02")
    assert read_index(source / "val").shards == read_index(source / "val").names
    assert verify(source, 1, False).sound


def test_class_folders_without_splits_get_one_too(tmp_path):
    root = folder_set(tmp_path / "source") / "train"
    index_set(root, 1, None)
    index = read_index(root / "train")
    assert (root / "train" / index.shards[0]).read_bytes() == (root / index.names[0]).read_bytes()
    assert verify(root, 1, False).sound
    assert convert(ConvertRequest(root, tmp_path / "out", "rec")).written == {"train": 12}


def test_files_of_both_splits_may_lie_in_one_folder(foreign):
    root, *_ = foreign("tfrecord")
    for split, name in (("train", "train"), ("val", "validation")):
        for path in (root / split).iterdir():
            path.rename(root / path.name.replace(split, name))
        (root / split).rmdir()
    assert dict(index_set(root, 1, None).splits) == {"train": 12, "val": 3}
    assert read_index(root / "val").shards[0].startswith("../validation-")
    assert convert(ConvertRequest(root, root.parent / "out", "rec")).written == {"train": 12, "val": 3}


def test_labels_may_count_from_another_number(foreign):
    root, *_ = foreign("tfrecord")
    assert index_set(root, 1, 0).classes == ("0", "1", "2", "3")


def test_a_damaged_shard_is_refused_and_nothing_is_written(foreign):
    root, *_ = foreign("tfrecord")
    shard = sorted((root / "train").iterdir())[0]
    shard.write_bytes(shard.read_bytes()[:-10])
    with pytest.raises(UserError, match="the file ends within a record at byte"):
        index_set(root, 1, None)
    assert not (root / "dataset.json").exists()
    assert not (root / ".unfinished").exists()


def test_the_command_tells_what_it_found(foreign, trainmark):
    foreign("webdataset")
    result = trainmark("data", "index", "set", "--workers", "1", "--json")
    assert json.loads(result.out)["splits"] == {"train": 12, "val": 3}
    again = trainmark("data", "index", "set")
    assert (again.code, again.err) == (
        2,
        "trainmark: set is a set already; `trainmark data verify set` checks it.\n",
    )
