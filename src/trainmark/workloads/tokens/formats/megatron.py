"""Megatron's `.bin` and `.idx`: the ids of all sequences one behind the other, and an index of them.

The index: `MMIDIDX` and two zeros, version 1 (uint64), the code of the ids' type (uint8), how many sequences
and document boundaries (uint64 each), then lengths (int32), byte offsets (int64) and document boundaries
(int64). A multimodal set has a mode of each sequence (int8) behind them.
"""

import struct

import numpy as np

from trainmark.workloads.tokens.formats import mapped
from trainmark.workloads.tokens.formats.mapped import UnfitTokens

NAME = "megatron"
MAGIC = b"MMIDIDX\x00\x00"
VERSION = 1
HEAD = struct.Struct("<9sQBQQ")
DTYPES = {1: "u1", 2: "i1", 3: "<i2", 4: "<i4", 5: "<i8", 8: "<u2"}  # 6 and 7 are floats: no ids


def index_path(path):
    return path[: -len(".bin")] + ".idx"


def open_file(path):
    """Return the ids of the `.bin`, memory-mapped, once the index beside it fits."""
    dtype, lengths, pointers, documents = read_index(index_path(path))
    width = dtype.itemsize
    count = int(lengths.sum(dtype=np.int64))
    size = mapped.size_of(path)
    expected = np.concatenate([[0], np.cumsum(lengths[:-1], dtype=np.int64)]) * width
    if (lengths < 0).any() or not np.array_equal(pointers, expected[: len(pointers)]):
        outside = int(pointers.max()) >= size if len(pointers) else False
        what = "points outside of the .bin" if outside else "does not follow its sequences' lengths"
        raise UnfitTokens("{} {}: it is damaged.".format(index_path(path), what))
    if size != count * width:
        raise UnfitTokens(
            "{} has {} bytes, and its index says {} tokens of {}: one of them is cut.".format(
                path, size, count, width
            )
        )
    if len(documents) and (
        documents[0] != 0 or documents[-1] != len(lengths) or (np.diff(documents) < 0).any()
    ):
        raise UnfitTokens("{}: its document boundaries do not cover its sequences.".format(index_path(path)))
    return mapped.map_ids(path, dtype, 0, count)


def read_index(path):
    """Return the type of the ids, the lengths and byte offsets of the sequences, the document boundaries."""
    head = mapped.first_bytes(path, HEAD.size)
    if head[: len(MAGIC)] != MAGIC:
        raise UnfitTokens("{} does not begin with MMIDIDX: it is no index of Megatron's.".format(path))
    if len(head) < HEAD.size:
        raise UnfitTokens("{} ends within its header.".format(path))
    _, version, code, sequences, documents = HEAD.unpack(head)
    if version != VERSION:
        raise UnfitTokens("{} is of version {}; known is {}.".format(path, version, VERSION))
    if code not in DTYPES:
        raise UnfitTokens("{} has ids of type {}, which is no integer of Megatron's.".format(path, code))
    needed = HEAD.size + 12 * sequences + 8 * documents
    size = mapped.size_of(path)
    if size not in (needed, needed + sequences):
        raise UnfitTokens(
            "{} has {} bytes where {} sequences and {} boundaries take {}: it is cut or damaged.".format(
                path, size, sequences, documents, needed
            )
        )
    at = HEAD.size
    arrays = []
    for dtype, count in (("<i4", sequences), ("<i8", sequences), ("<i8", documents)):
        arrays.append(mapped.map_ids(path, dtype, at, count))
        at += np.dtype(dtype).itemsize * count
    return (np.dtype(DTYPES[code]), *arrays)


def index_bytes(lengths, dtype):
    """Return an index of sequences of these lengths, each a document of its own."""
    (code,) = [code for code, kind in DTYPES.items() if np.dtype(kind) == np.dtype(dtype)]
    lengths = np.asarray(lengths, "<i4")
    pointers = np.zeros(len(lengths), "<i8")
    np.cumsum(lengths[:-1], out=pointers[1:])
    pointers *= np.dtype(dtype).itemsize
    documents = np.arange(len(lengths) + 1, dtype="<i8")
    head = HEAD.pack(MAGIC, VERSION, code, len(lengths), len(documents))
    return b"".join((head, lengths.tobytes(), pointers.tobytes(), documents.tobytes()))
