"""index.npy, shards.txt, names.txt and dataset.json: written and read, and refused where they are damaged."""

import numpy as np
import pytest

from trainmark.base.errors import UserError
from trainmark.data.files import (
    RECORD,
    ImageDataset,
    SplitIndex,
    read_dataset,
    read_index,
    whole_file,
    write_dataset,
    write_index,
)


def an_index(count=3):
    rows = np.zeros(count, RECORD)
    rows["shard"] = np.arange(count)
    rows["offset"] = 2**40
    return SplitIndex(rows, tuple(f"s{i}" for i in range(count)), tuple(f"c/ü{i}.JPEG" for i in range(count)))


def test_an_index_is_read_as_it_was_written(tmp_path):
    write_index(tmp_path, an_index())
    index = read_index(tmp_path)
    assert (index.rows == an_index().rows).all()
    assert (index.shards, index.names) == (an_index().shards, an_index().names)


def test_a_record_has_36_bytes_on_every_machine():
    assert RECORD.itemsize == 36


def test_an_empty_split_has_an_index_too(tmp_path):
    write_index(tmp_path, an_index(0))
    assert len(read_index(tmp_path).rows) == 0


def test_a_name_with_a_line_break_is_refused(tmp_path):
    index = SplitIndex(an_index(1).rows, ("s",), ("a\nb",))
    with pytest.raises(UserError, match="line break"):
        write_index(tmp_path, index)


@pytest.mark.parametrize("name", ["index.npy", "shards.txt", "names.txt"])
def test_a_file_that_is_missing_is_one_sentence(tmp_path, name):
    write_index(tmp_path, an_index())
    (tmp_path / name).unlink()
    with pytest.raises(UserError, match="is missing"):
        read_index(tmp_path)


@pytest.mark.parametrize("name", ["index.npy", "shards.txt", "names.txt"])
def test_a_file_that_is_cut_is_one_sentence(tmp_path, name):
    write_index(tmp_path, an_index())
    content = (tmp_path / name).read_bytes()
    for length in range(0, len(content) - 1, 5):
        (tmp_path / name).write_bytes(content[:length])
        with pytest.raises(UserError):
            read_index(tmp_path)


@pytest.mark.parametrize(("name", "lines"), [("names.txt", "a\nb\nc\nd\n"), ("shards.txt", "a\nb\n")])
def test_a_list_of_another_length_than_the_index_says_is_refused(tmp_path, name, lines):
    write_index(tmp_path, an_index())
    (tmp_path / name).write_text(lines)
    with pytest.raises(UserError, match=r"index\.npy"):
        read_index(tmp_path)


def test_a_dataset_is_read_as_it_was_written(tmp_path):
    dataset = ImageDataset("rec", ("a", "b"), {"train": 5}, {"seed": 1})
    write_dataset(tmp_path, dataset)
    assert read_dataset(tmp_path) == dataset


@pytest.mark.parametrize("content", ["", "{}", "[]", '{"trainmark_dataset": 2}', "[" * 5000, "null"])
def test_a_damaged_dataset_file_is_one_sentence(tmp_path, content):
    (tmp_path / "dataset.json").write_text(content)
    with pytest.raises(UserError):
        read_dataset(tmp_path)


def test_a_folder_without_it_is_unfinished(tmp_path):
    with pytest.raises(UserError, match="unfinished"):
        read_dataset(tmp_path)


def test_a_file_that_fails_half_way_leaves_what_was_there(tmp_path):
    (tmp_path / "a").write_text("before")
    with pytest.raises(RuntimeError), whole_file(tmp_path / "a") as file:
        file.write(b"half")
        raise RuntimeError
    assert [path.name for path in tmp_path.iterdir()] == ["a"]
    assert (tmp_path / "a").read_text() == "before"
