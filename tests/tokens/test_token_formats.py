"""Token files as people have them: read as they are, and refused in one sentence where they are damaged."""

import json
import os
import struct

import numpy as np
import pytest
import token_files

from trainmark.workloads.tokens import dataset
from trainmark.workloads.tokens.formats.mapped import UnfitTokens

IDS = np.random.RandomState(1).randint(0, 1000, 5000)


def read(folder, split="train"):
    opened = dataset.open_split(folder, split)
    return opened.format, opened.read(0, opened.count).tolist()


def test_llmc_s_files_of_both_kinds_are_read(tmp_path):
    token_files.llmc(tmp_path / "fineweb_train_000001.bin", IDS)
    token_files.llmc(tmp_path / "fineweb_val_000000.bin", IDS[:10] + 100_000, 20240801, 7, "<u4")
    assert read(tmp_path) == ("llmc", IDS.tolist())
    assert read(tmp_path, "val") == ("llmc", (IDS[:10] + 100_000).tolist())


def test_nanogpt_s_files_are_read_and_its_pickle_is_not_touched(tmp_path):
    token_files.nanogpt(tmp_path / "train.bin", IDS)
    (tmp_path / "meta.pkl").write_bytes(b"cos\nsystem\n(S'exit 1'\ntR.")
    assert read(tmp_path) == ("nanogpt", IDS.tolist())


@pytest.mark.parametrize(("code", "dtype"), [(1, "u1"), (3, "<i2"), (4, "<i4"), (5, "<i8"), (8, "<u2")])
def test_megatron_s_files_of_every_integer_type_are_read(tmp_path, code, dtype):
    ids = IDS % 128
    token_files.megatron(tmp_path / "my-gpt2_text_document", [ids[:7], ids[7:1000], ids[1000:]], code, dtype)
    assert read(tmp_path) == ("megatron", ids.tolist())


def test_shards_are_one_stream_in_the_order_of_their_numbers(tmp_path):
    for number, part in zip((1, 2, 10), np.array_split(IDS, 3), strict=True):
        token_files.llmc(tmp_path / f"text_train_{number}.bin", part)
    opened = dataset.open_split(tmp_path, "train")
    assert opened.read(0, 5000).tolist() == IDS.tolist()
    assert opened.read(1000, 4500).tolist() == IDS[1000:4500].tolist()
    windows = np.random.RandomState(0).permutation(4999 // 7)
    tokens, targets = np.zeros((2, len(windows), 7), np.int32)
    opened.fill(windows, tokens, targets)
    assert tokens.tolist() == [IDS[7 * place : 7 * place + 7].tolist() for place in windows]
    assert targets.tolist() == [IDS[7 * place + 1 : 7 * place + 8].tolist() for place in windows]


def test_mlm_records_of_several_files_are_read_by_their_numbers(tmp_path):
    first = np.load(token_files.mlm(tmp_path / "train_0.mlm.npy", 5))
    second = np.load(token_files.mlm(tmp_path / "train_1.mlm.npy", 9))
    opened = dataset.open_split(tmp_path, "train")
    rows = np.array([13, 0, 4, 5, 5])
    both = np.concatenate([first, second])[rows]
    assert (opened.count, opened.length, opened.predictions) == (14, 16, 2)
    for values, name in zip(opened.read(rows), both.dtype.names, strict=True):
        assert values.dtype == np.int32
        assert values.tolist() == both[name].tolist()


@pytest.mark.parametrize(
    ("names", "split", "chosen"),
    [
        (["x_train_1.bin", "x_val_0.bin"], "train", ["x_train_1.bin"]),
        (["training.bin", "valid.bin", "test.bin"], "val", ["valid.bin"]),
        (["a-train.bin", "a-test.bin"], "val", ["a-test.bin"]),
        (["document.bin"], "train", ["document.bin"]),
        (["document.bin"], "val", []),
        (["eval.bin"], "train", []),
        (["strain.bin", "interval.bin"], "val", []),
    ],
)
def test_a_file_s_name_says_its_split(names, split, chosen):
    assert dataset.of_split(names, split) == chosen


def llmc_with(change):
    def make(folder):
        path = token_files.llmc(folder / "train.bin", IDS)
        content = bytearray(path.read_bytes())
        path.write_bytes(change(content))

    return make


def with_int(place, number):
    return lambda content: content[: 4 * place] + struct.pack("<i", number) + content[4 * place + 4 :]


def megatron_with(change):
    def make(folder):
        path = token_files.megatron(folder / "train", [IDS[:100], IDS[100:]])
        index = path.with_suffix(".idx")
        index.write_bytes(change(bytearray(index.read_bytes())))

    return make


def with_bytes(place, content):
    return lambda index: index[:place] + content + index[place + len(content) :]


def short_bin(folder):
    path = token_files.megatron(folder / "train", [IDS]).with_suffix(".bin")
    path.write_bytes(path.read_bytes()[:-2])


def damaged_records(folder):
    path = token_files.mlm(folder / "train.mlm.npy", 9)
    path.write_bytes(path.read_bytes()[:-5])


def meta(**fields):
    def make(folder):
        token_files.llmc(folder / "train.bin", IDS)
        (folder / "meta.json").write_text(json.dumps({"trainmark_tokens": 1, **fields}))

    return make


def two_formats(folder):
    token_files.llmc(folder / "train.bin", IDS)
    token_files.mlm(folder / "train.mlm.npy", 3)


def two_lengths(folder):
    token_files.mlm(folder / "train_0.mlm.npy", 3, length=16)
    token_files.mlm(folder / "train_1.mlm.npy", 3, length=32)


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (llmc_with(lambda content: content[:-1]), "has 9999 bytes behind its header: it is cut or damaged."),
        (llmc_with(lambda content: content[:100]), "has 100 bytes, fewer than llm.c's header of 1024."),
        (llmc_with(with_int(0, 1234)), "begins with 1234, llm.c's magic number is 20240520 or 20240801."),
        (llmc_with(with_int(1, 3)), "is of version 3; llm.c's 20240520 has version 1."),
        (llmc_with(with_int(2, -5)), "says -5 tokens of 2 bytes"),
        (llmc_with(with_int(2, 0)), "says 0 tokens of 2 bytes"),
        (lambda folder: (folder / "train.bin").write_bytes(b"abc"), "has 3 bytes, an odd number"),
        (lambda folder: (folder / "train.bin").write_bytes(b""), "hold nothing"),
        (lambda folder: token_files.nanogpt(folder / "text.bin", IDS), "only train.bin and val.bin are read"),
        (lambda folder: os.mkfifo(folder / "train.bin"), "is no regular file."),
        (lambda folder: None, "holds no token files"),
        (two_formats, "holds files of several formats, llmc (train.bin) and mlm (train.mlm.npy)"),
        (megatron_with(with_bytes(0, b"X")), "does not begin with MMIDIDX"),
        (megatron_with(with_bytes(9, b"\x02")), "is of version 2; known is 1."),
        (megatron_with(with_bytes(17, b"\x07")), "has ids of type 7, which is no integer of Megatron's."),
        (megatron_with(with_bytes(34 + 8 + 8, struct.pack("<q", 1 << 40))), "points outside of the .bin"),
        (
            megatron_with(with_bytes(34 + 8 + 8, struct.pack("<q", 100))),
            "does not follow its sequences' lengths",
        ),
        (megatron_with(with_bytes(34, struct.pack("<i", -4))), "does not follow its sequences' lengths"),
        (megatron_with(with_bytes(34 + 24, struct.pack("<q", 1))), "boundaries do not cover its sequences"),
        (megatron_with(lambda index: index[:-3]), "it is cut or damaged."),
        (megatron_with(lambda index: index[:20]), "ends within its header."),
        (short_bin, "its index says 5000 tokens of 2: one of them is cut."),
        (damaged_records, "is no whole NumPy file"),
        (lambda folder: np.save(folder / "train.mlm.npy", IDS), "is no array of MLM records"),
        (two_lengths, "records of several lengths"),
        (meta(vocabulary=float("nan")), "is damaged (NaN is no number)."),
        (meta(vocabulary="many"), "is damaged (vocabulary is 'many')."),
        (meta(plateaus=[1.0, None]), "is damaged (plateaus are no numbers)."),
        (meta(splits={"train": -1}), "is damaged (train is -1)."),
        (meta(trainmark_tokens=7), "version 7 is not known here"),
        (meta(splits={"train": 6000}), "files hold 5000, meta.json says 6000"),
        (meta(format="nanogpt"), "says the format nanogpt, the files are llmc"),
        (lambda folder: (folder / "state.json").write_text("{}"), "`trainmark data convert"),
    ],
)
def test_what_cannot_be_read_is_refused_in_one_sentence(tmp_path, make, sentence):
    make(tmp_path)
    with pytest.raises(UnfitTokens) as refused:
        dataset.open_split(tmp_path, "train")
    assert sentence in str(refused.value)
    assert str(refused.value).endswith(".")
    assert "\n" not in str(refused.value)


def test_an_unfinished_folder_is_not_taken_for_a_small_set(tmp_path):
    token_files.llmc(tmp_path / "train_000000.bin", IDS)
    (tmp_path / ".unfinished").mkdir()
    with pytest.raises(UnfitTokens, match="is unfinished"):
        dataset.open_split(tmp_path, "train")
