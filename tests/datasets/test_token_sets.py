"""`trainmark data` on token sets: made, converted there and back, verified, indexed, timed, refused."""

import json
import shutil
import sys
from importlib.metadata import distributions
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

from trainmark.base.wire import framed
from trainmark.workloads.tokens import dataset

SMALL = ("--tokens", "30000", "--vocabulary", "96", "--classes", "4")


def has_datasets() -> bool:
    """Whether the package is installed: a folder of tests has the same name."""
    return any(package.name == "datasets" for package in distributions())


NEEDS_ARROW = pytest.mark.skipif(find_spec("pyarrow") is None, reason="pyarrow is not installed")
STREAMS = ["llmc", "nanogpt", "megatron", pytest.param("arrow", marks=NEEDS_ARROW)]


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """One corpus, and MLM records of it, that many tests look at."""
    from trainmark.data.make import CorpusPlan, make_corpus
    from trainmark.data.tokens.convert import TokenRequest, convert_tokens

    folder = tmp_path_factory.mktemp("tokens")
    make_corpus(CorpusPlan(30000, 3000, 96, 2, 4, 0, "llmc"), folder / "corpus", lambda done, total: None)
    request = TokenRequest(folder / "corpus", folder / "mlm", "mlm", length=32)
    convert_tokens(request, lambda done, total: None)
    return folder


@pytest.fixture
def sets(made, tmp_path):
    for name in ("corpus", "mlm"):
        shutil.copytree(made / name, tmp_path / name)
    return tmp_path


def call(trainmark, *words, code=0):
    result = trainmark("data", *words, "--json")
    assert result.code == code, result.err
    return json.loads(result.out)


def refusal(trainmark, *words):
    result = trainmark("data", *words)
    assert result.code == 2
    assert result.err.count("\n") == 1
    return result.err


def content(folder):
    return {
        path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()
    }


def test_a_corpus_says_its_entropy_and_the_same_arguments_give_the_same_bytes(trainmark, sets):
    record = call(trainmark, "make", "again", *SMALL)
    assert content(sets / "again") == content(sets / "corpus")
    assert record["splits"] == {"train": 30000, "val": 3000}
    assert record["entropy"] == record["plateaus"][2] < record["plateaus"][1] < record["plateaus"][0]
    text = trainmark("data", "make", "again", *SMALL).out
    assert "again is complete already: 30,000 train and 3,000 val tokens" in text
    assert f"entropy {record['entropy']:.4f} nats a token" in text


@pytest.mark.parametrize("form", STREAMS)
def test_a_corpus_comes_back_bit_for_bit_from_every_format(trainmark, sets, form):
    call(trainmark, "convert", "corpus", "other", "--to", form)
    verdict = call(trainmark, "verify", "other", "--workers", "1")
    assert (verdict["sound"], verdict["splits"]) == (True, {"train": 30000, "val": 3000})
    call(trainmark, "convert", "other", "back", "--to", "llmc")
    for name in ("train_000000.bin", "val_000000.bin"):
        assert (sets / "back" / name).read_bytes() == (sets / "corpus" / name).read_bytes()
    assert dataset.describe(sets / "back")["plateaus"] == dataset.describe(sets / "corpus")["plateaus"]


@pytest.mark.parametrize("form", ["llmc", "megatron", pytest.param("arrow", marks=NEEDS_ARROW)])
def test_shards_are_one_stream_again(trainmark, sets, form):
    call(trainmark, "convert", "corpus", "shards", "--to", form, "--shards", "7")
    call(trainmark, "convert", "shards", "whole", "--to", "llmc")
    assert (sets / "whole/train_000000.bin").read_bytes() == (sets / "corpus/train_000000.bin").read_bytes()


def test_a_vocabulary_beyond_16_bits_gets_wider_ids(trainmark, tmp_path):
    call(trainmark, "make", "wide", "--tokens", "9000", "--vocabulary", "100000", "--validation", "0")
    call(trainmark, "convert", "wide", "wide-megatron", "--to", "megatron")
    wide, megatron = (dataset.open_split(tmp_path / name, "train") for name in ("wide", "wide-megatron"))
    assert (wide.shards[0].dtype, megatron.shards[0].dtype) == (np.dtype("<u4"), np.dtype("<i4"))
    assert wide.read(0, 9000).tolist() == megatron.read(0, 9000).tolist()
    assert wide.largest() > 65_536
    assert "nanoGPT's ids are below 65,536" in refusal(trainmark, "convert", "wide", "x", "--to", "nanogpt")
    assert not (tmp_path / "x").exists()


def test_mlm_records_come_back_bit_for_bit_from_bert_s_tfrecords(trainmark, sets):
    call(trainmark, "convert", "mlm", "records", "--to", "tfrecord", "--shards", "2")
    assert call(trainmark, "verify", "records")["sound"]
    call(trainmark, "convert", "records", "back", "--to", "mlm")
    for name in ("train.mlm.npy", "val.mlm.npy"):
        assert (sets / "back" / name).read_bytes() == (sets / "mlm" / name).read_bytes()


def test_records_of_somebody_else_without_a_meta_are_converted(trainmark, sets):
    call(trainmark, "convert", "mlm", "records", "--to", "tfrecord")
    foreign = sets / "foreign"
    foreign.mkdir()
    for number, path in enumerate(sorted((sets / "records").glob("*.tfrecord"))):
        shutil.copy(path, foreign / f"wikicorpus_en_{('training', 'test')[number]}_0.tfrecord")
    assert call(trainmark, "verify", "foreign")["by"] == "the rules of tfrecord"
    call(trainmark, "convert", "foreign", "back", "--to", "mlm", "--vocabulary", "100")
    assert (sets / "back/val.mlm.npy").read_bytes() == (sets / "mlm/val.mlm.npy").read_bytes()


def test_what_was_stopped_is_begun_anew_by_the_same_command_and_refused_to_another(trainmark, sets):
    whole = content(sets / "corpus")
    shutil.copytree(sets / "corpus", sets / "stopped")
    plan = json.loads((sets / "stopped/meta.json").read_text())["plan"]
    for name in ("meta.json", "checksums.txt", "val_000000.bin"):
        (sets / "stopped" / name).unlink()
    (sets / "stopped/.unfinished").mkdir()
    (sets / "stopped/.unfinished/meta.json").write_text(json.dumps(plan))
    assert "was begun with seed = 0, not 1" in refusal(trainmark, "make", "stopped", *SMALL, "--seed", "1")
    assert "is unfinished" in refusal(trainmark, "verify", "stopped")
    call(trainmark, "make", "stopped", *SMALL)
    assert content(sets / "stopped") == whole


def test_a_folder_of_somebody_else_is_indexed_without_a_change_to_its_files(trainmark, sets):
    (sets / "foreign").mkdir()
    shutil.copy(sets / "corpus/train_000000.bin", sets / "foreign/text_train_000001.bin")
    before = content(sets / "foreign")
    record = call(trainmark, "index", "foreign")
    assert dataset.describe(sets / "foreign")["vocabulary"] == record["largest_id"] + 1 == 96
    after = content(sets / "foreign")
    assert {name: after[name] for name in before} == before
    assert call(trainmark, "verify", "foreign")["by"] == "checksums and the rules of llmc"
    assert "has a meta.json already" in refusal(trainmark, "index", "foreign")


def flipped(path: Path, place: int) -> None:
    data = bytearray(path.read_bytes())
    data[place] ^= 0x40
    path.write_bytes(bytes(data))


@pytest.mark.parametrize(
    ("damage", "finding"),
    [
        (
            lambda root: flipped(root / "train_000000.bin", 5000),
            "train_000000.bin: differs from its checksum",
        ),
        (lambda root: flipped(root / "train_000000.bin", 1), "llm.c's magic number is"),
        (
            lambda root: flipped(root / "train_000000.bin", 1025),
            "and the vocabulary has 96",
        ),
        (lambda root: (root / "val_000000.bin").write_bytes(b"x" * 50), "fewer than llm.c's header"),
        (lambda root: (root / "val_000000.bin").unlink(), "val_000000.bin: is missing"),
        (lambda root: (root / "notes.txt").write_text("x"), "notes.txt: is not listed in checksums.txt"),
        (lambda root: (root / "checksums.txt").unlink(), "checksums.txt: is missing"),
        (lambda root: (root / "checksums.txt").write_text("x\n"), "line 1 is no checksum"),
        (
            lambda root: (root / "meta.json").write_text('{"trainmark_tokens": 1, "vocabulary": NaN}'),
            "NaN is no",
        ),
    ],
)
def test_damage_is_named_and_the_exit_code_is_1(trainmark, sets, damage, finding):
    damage(sets / "corpus")
    result = trainmark("data", "verify", "corpus", "--workers", "1")
    assert result.code == 1
    assert finding in result.out


def test_an_id_beyond_the_vocabulary_is_found_without_checksums_too(trainmark, sets):
    meta = json.loads((sets / "corpus/meta.json").read_text())
    (sets / "corpus/meta.json").write_text(json.dumps({**meta, "vocabulary": 90}))
    verdict = call(trainmark, "verify", "corpus", code=1)
    assert [finding["file"] for finding in verdict["findings"]] == [
        "meta.json",
        "train_000000.bin",
        "val_000000.bin",
    ]


@pytest.mark.parametrize(
    ("field", "value", "finding"),
    [
        ("lengths", 0, "has a length of no valid token, or beyond the record in record 3"),
        ("lengths", 33, "has a length of no valid token, or beyond the record in record 3"),
        ("positions", 40, "has a masked position beyond its length in record 3"),
        ("labels", -2, "has a label below -1 in record 3"),
        ("segments", 2, "has a segment that is neither 0 nor 1 in record 3"),
        ("next_sentence", 2, "has a next-sentence label that is neither 0 nor 1 in record 3"),
        ("tokens", 100, "has the id 100, and the vocabulary has 100"),
    ],
)
def test_records_that_no_training_could_use_are_found(trainmark, sets, field, value, finding):
    records = np.load(sets / "mlm/train.mlm.npy")
    records[field][3, ...] = value
    np.save(sets / "mlm/train.mlm.npy", records)
    result = trainmark("data", "verify", "mlm", "--workers", "1")
    assert result.code == 1
    assert finding in result.out


def test_a_tfrecord_with_a_flipped_byte_or_without_a_list_is_one_sentence(trainmark, sets):
    call(trainmark, "convert", "mlm", "records", "--to", "tfrecord")
    path = next((sets / "records").glob("train*"))
    flipped(path, path.stat().st_size // 2)
    assert "the checksum of a record" in refusal(trainmark, "convert", "records", "x", "--to", "mlm")
    (sets / "odd").mkdir()
    feature = b"\x0a\x14\x0a\x12\x0a\x09input_ids\x12\x05\x1a\x03\x0a\x01\x07"
    (sets / "odd/train.tfrecord").write_bytes(framed(feature))
    assert "a record without input_mask at byte 0" in refusal(trainmark, "convert", "odd", "x", "--to", "mlm")


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("make", "x", "--tokens", "100", "--images", "3"), "give --images or --tokens, not both."),
        (("make", "x"), "give --classes and --images for pictures, or --tokens for a corpus."),
        (
            ("make", "x", "--classes", "2", "--images", "3", "--order", "1"),
            "are for a corpus; give --tokens.",
        ),
        (
            ("make", "x", "--tokens", "100", "--format", "lmc"),
            "there is no format 'lmc' of corpora; did you mean",
        ),
        (("make", "x", "--tokens", "100", "--vocabulary", "8"), "a vocabulary of 8 has no 16 classes."),
        (("make", "x", "--tokens", "100", "--classes", "256"), "lower one of them."),
        (("make", "corpus", "--tokens", "100"), "corpus was begun with tokens = 30000, not 100"),
        (("make", "full", "--tokens", "100"), "full exists and is no unfinished set"),
        (
            ("convert", "corpus", "x", "--to", "megatrn"),
            "there is no format 'megatrn' of tokens; did you mean",
        ),
        (("convert", "corpus", "corpus", "--to", "nanogpt"), "is the source itself"),
        (("convert", "corpus", "x", "--to", "nanogpt", "--shards", "2"), "nanoGPT reads one file a split"),
        (("convert", "corpus", "x", "--to", "llmc", "--shards", "9999"), "too few for 9999 files"),
        (("convert", "corpus", "x", "--to", "llmc", "--vocabulary", "50"), "its vocabulary has 50."),
        (("convert", "corpus", "x", "--to", "tfrecord"), "make MLM records of it first, by --to mlm."),
        (("convert", "mlm", "x", "--to", "llmc"), "has MLM records, which are no stream of tokens"),
        (
            ("convert", "corpus", "x", "--to", "mlm", "--special", "1,2"),
            "give four ids, as in 0,101,102,103.",
        ),
        (("convert", "corpus", "x", "--to", "mlm", "--special", "1,2,3,3"), "give four different ids"),
        (("convert", "corpus", "x", "--to", "mlm", "--length", "9000"), "3000 tokens, too few for a record"),
        (("convert", "nowhere", "x", "--to", "llmc"), "nowhere does not exist"),
        (("bench", "corpus", "--length", "20000", "--seconds", "0.1"), "fewer than a batch of 64"),
    ],
)
def test_bad_input_is_one_sentence_and_nothing_is_made(trainmark, sets, words, sentence):
    (sets / "full").mkdir()
    (sets / "full/notes.txt").write_text("mine")
    assert sentence in refusal(trainmark, *words)
    assert not (sets / "x").exists()
    assert content(sets / "full") == {"notes.txt": b"mine"}


def test_pictures_with_a_meta_json_of_somebody_else_are_still_pictures(trainmark, tmp_path):
    (tmp_path / "pictures/cats").mkdir(parents=True)
    (tmp_path / "pictures/meta.json").write_text("{}")
    assert "holds nothing that is known as a set" in refusal(trainmark, "verify", "pictures")


def test_the_loader_is_timed_in_tokens_a_second(trainmark, sets):
    record = call(
        trainmark, "bench", "corpus", "--length", "64", "--batch", "8", "--seconds", "0.1", "--rounds", "1"
    )
    assert (record["format"], record["length"]) == ("llmc", 64)
    assert record["tokens_per_second"] > 0
    assert record["tokens_per_second_per_core"] > 0


def test_without_pyarrow_one_sentence_says_what_to_install(trainmark, sets, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    assert "Arrow files need pyarrow; pip install pyarrow." in refusal(
        trainmark, "convert", "corpus", "x", "--to", "arrow"
    )
    assert not (sets / "x").exists()


@NEEDS_ARROW
def test_arrow_files_of_somebody_else_are_read_whatever_their_integers(trainmark, tmp_path):
    import pyarrow as pa

    for split, rows, kind in (("train", [[1, 2], [], [3]], pa.int64()), ("validation", [[4]], pa.uint16())):
        (tmp_path / "hf" / split).mkdir(parents=True)
        table = pa.table({"text": ["x"] * len(rows), "input_ids": pa.array(rows, pa.large_list(kind))})
        path = tmp_path / "hf" / split / "data-00000-of-00001.arrow"
        with pa.OSFile(str(path), "wb") as file, pa.ipc.new_stream(file, table.schema) as stream:
            stream.write_table(table)
        state = {"_data_files": [{"filename": "data-00000-of-00001.arrow"}]}
        (tmp_path / "hf" / split / "state.json").write_text(json.dumps(state))
    (tmp_path / "hf/dataset_dict.json").write_text(json.dumps({"splits": ["train", "validation"]}))
    call(trainmark, "convert", "hf", "plain", "--to", "nanogpt")
    assert np.fromfile(tmp_path / "plain/train.bin", "<u2").tolist() == [1, 2, 3]
    assert np.fromfile(tmp_path / "plain/val.bin", "<u2").tolist() == [4]
    path = tmp_path / "hf/train/data-00000-of-00001.arrow"
    path.write_bytes(path.read_bytes()[:100])
    assert "is no whole Arrow stream" in refusal(trainmark, "convert", "hf", "x", "--to", "llmc")


@NEEDS_ARROW
@pytest.mark.skipif(not has_datasets(), reason="Hugging Face datasets is not installed")
def test_hugging_face_s_own_library_reads_what_we_write(trainmark, sets):
    import datasets

    call(trainmark, "convert", "corpus", "hf", "--to", "arrow")
    loaded = datasets.load_from_disk(str(sets / "hf"))
    ids = [token for row in loaded["train"]["input_ids"] for token in row]
    assert ids == dataset.open_split(sets / "corpus", "train").read(0, 30000).tolist()
