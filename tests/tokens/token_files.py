"""Token files written by hand, byte by byte, as their formats say."""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np


def llmc(path: Path, ids, magic: int = 20240520, version: int = 1, dtype: str = "<u2") -> Path:
    header = np.zeros(256, "<i4")
    header[:3] = magic, version, len(ids)
    path.write_bytes(header.tobytes() + np.asarray(ids, dtype).tobytes())
    return path


def nanogpt(path: Path, ids) -> Path:
    path.write_bytes(np.asarray(ids, "<u2").tobytes())
    return path


def megatron(path: Path, sequences, code: int = 8, dtype: str = "<u2", documents=None) -> Path:
    """`path` without its ending; one document a sequence."""
    arrays = [np.asarray(ids, dtype) for ids in sequences]
    path.with_suffix(".bin").write_bytes(b"".join(array.tobytes() for array in arrays))
    offsets = np.cumsum([0, *(array.nbytes for array in arrays)])[:-1]
    documents = range(len(arrays) + 1) if documents is None else documents
    path.with_suffix(".idx").write_bytes(
        b"MMIDIDX\x00\x00"
        + struct.pack("<QBQQ", 1, code, len(arrays), len(documents))
        + np.array([len(array) for array in arrays], "<i4").tobytes()
        + np.array(offsets, "<i8").tobytes()
        + np.array(documents, "<i8").tobytes()
    )
    return path


def mlm(path: Path, rows: int, length: int = 16, predictions: int = 2, vocabulary: int = 100) -> Path:
    """Records of random ids, half of them cut short."""
    random = np.random.RandomState(0)
    fields = [
        ("tokens", "<u2", (length,)),
        ("segments", "u1", (length,)),
        ("lengths", "<u2"),
        ("positions", "<u2", (predictions,)),
        ("labels", "<i4", (predictions,)),
        ("next_sentence", "u1"),
    ]
    records = np.zeros(rows, fields)
    records["tokens"] = random.randint(0, vocabulary, (rows, length))
    records["segments"][:, length // 4 :] = 1
    records["lengths"] = random.randint(length // 2, length + 1, rows)
    records["positions"] = random.randint(0, length // 2, (rows, predictions))
    records["labels"] = random.randint(-1, vocabulary, (rows, predictions))
    records["next_sentence"] = random.randint(0, 2, rows)
    np.save(path, records)
    return path
