"""MLM records: `train.mlm.npy`, a structured array in NumPy's own form, one row a sequence.

`tokens` and `segments` (T,), `lengths` (valid tokens), `positions` and `labels` (P,) of the masked ones,
label -1 where there is none, `next_sentence` 0 where the second segment follows the first and 1 where it is a
random one.
"""

import numpy as np

from trainmark.workloads.tokens.formats import mapped
from trainmark.workloads.tokens.formats.mapped import UnfitTokens

NAME = "mlm"
SUFFIX = ".mlm.npy"
FIELDS = ("tokens", "segments", "lengths", "positions", "labels", "next_sentence")


def record(length, predictions, vocabulary):
    """Return the type of a row: ids in as few bytes as the vocabulary needs."""
    ids = "<u2" if vocabulary <= 1 << 16 else "<u4"
    return np.dtype(
        [
            ("tokens", ids, (length,)),
            ("segments", "u1", (length,)),
            ("lengths", "<u2"),
            ("positions", "<u2", (predictions,)),
            ("labels", "<i4", (predictions,)),
            ("next_sentence", "u1"),
        ]
    )


def open_file(path):
    """Return the rows, memory-mapped."""
    mapped.size_of(path)
    try:
        rows = np.asarray(np.load(path, mmap_mode="r", allow_pickle=False))
    except (OSError, ValueError, EOFError, SyntaxError) as error:
        raise UnfitTokens("{} is no whole NumPy file: {}.".format(path, error)) from error
    dtype = rows.dtype
    shapes = [dtype[name].shape for name in FIELDS] if dtype.names == FIELDS else []
    fits = shapes and [len(shape) for shape in shapes] == [1, 1, 0, 1, 1, 0]
    if not fits or rows.ndim != 1 or shapes[0] != shapes[1] or shapes[3] != shapes[4]:
        raise UnfitTokens("{} is no array of MLM records, which have {}.".format(path, ", ".join(FIELDS)))
    if any(dtype[name].base.kind not in "ui" for name in FIELDS):
        raise UnfitTokens("{}: MLM records are whole numbers.".format(path))
    return rows
