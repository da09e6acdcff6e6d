"""What we write is read by each framework's own reader, and is what its own writer writes, byte for byte."""

from __future__ import annotations

import hashlib
import io
import json
import os
import sqlite3
import struct
import subprocess
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from trainmark.data.convert import ConvertRequest, convert
from trainmark.data.files import read_index
from trainmark.data.picture import picture_header
from trainmark.machine.frameworks.installed import standing
from trainmark.runner import inventory

pytestmark = pytest.mark.usefixtures("installed_environments")

PROGRAMS = Path(__file__).parent / "formats"
CLASSES, PICTURES = 3, 4
MAGIC = struct.pack("<I", 0xCED7230A)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Twelve small JPEGs; two have RecordIO's magic number in a comment, one of them where it cuts."""
    root = tmp_path_factory.mktemp("formats") / "folder"
    generator = np.random.default_rng(1)
    for label in range(CLASSES):
        for number in range(PICTURES):
            path = root / "train" / f"n{label:02d}" / f"picture{number}.JPEG"
            path.parent.mkdir(parents=True, exist_ok=True)
            pixels = generator.integers(0, 256, (40 + number, 48 + label, 3)).astype(np.uint8)
            content = _jpeg(pixels)
            if label == 1 and number < 2:
                # Behind the head of 24 bytes, the comment begins at byte 20 of the JPEG or one further.
                content = _with_comment(content, b"ab"[number:] + MAGIC + b"cd" + MAGIC * 2)
            path.write_bytes(content)
    return root


def _jpeg(pixels):
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, "JPEG", quality=90)
    return file.getvalue()


def _with_comment(content, comment):
    return content[:2] + b"\xff\xfe" + struct.pack(">H", len(comment) + 2) + comment + content[2:]


def _converted(folder, target, to, shards=None):
    convert(ConvertRequest(folder, target, to, shards=shards))
    index = read_index(target / "train")
    plan = []
    for row, name in zip(index.rows, index.names, strict=True):
        file = folder / "train" / name
        header = picture_header(file.read_bytes())
        plan.append(
            {
                "name": name,
                "label": int(row["label"]),
                "file": str(file),
                "shard": int(row["shard"]),
                "width": header.width,
                "height": header.height,
            }
        )
    return plan


def _expected(plan):
    return [[one["label"], hashlib.sha256(Path(one["file"]).read_bytes()).hexdigest()] for one in plan]


def _interpreter(name):
    """That of the framework's environment; of what is no framework of ours, one that is named."""
    named = os.environ.get(f"TRAINMARK_PYTHON_{name.upper()}")
    if named:
        return named
    if name in ("webdataset", "ffcv", "dali"):
        pytest.skip(f"TRAINMARK_PYTHON_{name.upper()} names no interpreter that has {name}")
    if (python := inventory.interpreter_of(name)) is None:
        reason = standing(name)[1] or f"`trainmark frameworks install {name}` installs it"
        pytest.skip(f"{name} is not installed: {reason}")
    return str(python)


def _reply(name, *arguments):
    done = subprocess.run(
        [_interpreter(name), PROGRAMS / f"formats_with_{name}.py", *map(str, arguments)],
        capture_output=True,
        text=True,
        env={**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3", "OMP_NUM_THREADS": "1", "GLOG_v": "3"},
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout.splitlines()[-1])


def _read_back(name, to, folder, tmp_path, shards=None):
    """What the framework read, and whether that is all; its own files are in tmp_path / "own"."""
    _interpreter(name)
    plan = _converted(folder, tmp_path / to, to, shards)
    (tmp_path / "plan.json").write_text(json.dumps(plan))
    (tmp_path / "own").mkdir()
    reply = _reply(name, tmp_path / to / "train", tmp_path / "own", tmp_path / "plan.json")
    assert reply["read"] == _expected(plan)
    if "decoded" in reply:
        assert sorted(reply["decoded"]) == sorted(one["label"] for one in plan)


def _same_files(tmp_path, to, endings=("",)):
    own = sorted(path for path in (tmp_path / "own").iterdir() if path.name.endswith(endings))
    assert own
    for path in own:
        assert path.read_bytes() == (tmp_path / to / "train" / path.name).read_bytes(), path.name


def test_tensorflow_reads_and_writes_the_same_tfrecords(folder, tmp_path):
    _read_back("tensorflow", "tfrecord", folder, tmp_path, shards=2)
    _same_files(tmp_path, "tfrecord")


def test_mxnet_reads_and_writes_the_same_recordio_also_where_its_magic_number_is_in_a_picture(
    folder, tmp_path
):
    _read_back("mxnet", "rec", folder, tmp_path)
    _same_files(tmp_path, "rec")
    assert (tmp_path / "rec/train/train.rec.whole").exists()


def test_mindspore_reads_and_writes_the_same_mindrecords(folder, tmp_path):
    _read_back("mindspore", "mindrecord", folder, tmp_path, shards=2)
    for name in ("train.mindrecord0", "train.mindrecord1"):
        own, ours = tmp_path / "own" / name, tmp_path / "mindrecord/train" / name
        assert own.read_bytes() == ours.read_bytes()
        assert _rows(own) == _rows(ours)


def _rows(path):
    """SQLite's own bytes differ from version to version; what it says does not."""
    database = sqlite3.connect(f"{path}.db")
    rows = [database.execute(f"SELECT * FROM {table}").fetchall() for table in ("INDEXES", "SHARD_NAME")]
    columns = [line[1:3] for line in database.execute("PRAGMA table_info(INDEXES)")]
    database.close()
    return rows, columns


def test_oneflow_reads_and_writes_the_same_ofrecords(folder, tmp_path):
    _read_back("oneflow", "ofrecord", folder, tmp_path, shards=2)
    _same_files(tmp_path, "ofrecord")


def test_paddle_reads_the_list(folder, tmp_path):
    _read_back("paddle", "list", folder, tmp_path)


def test_webdataset_reads_and_writes_the_same_tars(folder, tmp_path):
    _read_back("webdataset", "webdataset", folder, tmp_path, shards=2)
    _same_files(tmp_path, "webdataset")


def test_ffcv_reads_and_writes_the_same_beton(folder, tmp_path):
    _read_back("ffcv", "beton", folder, tmp_path)
    _same_files(tmp_path, "beton")


def test_dali_reads_recordio_and_tfrecord_by_their_index_files(folder, tmp_path):
    _interpreter("dali")
    rec = _converted(folder, tmp_path / "rec", "rec")
    records = _converted(folder, tmp_path / "tfrecord", "tfrecord", 2)
    (tmp_path / "plan.json").write_text(json.dumps(rec))
    reply = _reply("dali", tmp_path / "rec/train", tmp_path / "tfrecord/train", tmp_path / "plan.json")
    assert reply["read"] == _expected(rec)
    assert reply["tfrecord"] == _expected(records)
