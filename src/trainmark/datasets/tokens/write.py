"""A set in one of the formats of token streams, split by split and file by file."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy.typing as npt

from trainmark.base.errors import UserError
from trainmark.datasets.tokens import arrow
from trainmark.datasets.tokens.source import check_ids, id_type
from trainmark.datasets.tokens.writers import llmc, megatron, nanogpt
from trainmark.datasets.tokens.writers.shard import cut_into_shards

WRITERS = {"llmc": llmc.write, "nanogpt": nanogpt.write, "megatron": megatron.write, arrow.NAME: arrow.write}
SHARD = 100_000_000  # tokens of a file, as in llm.c's FineWeb
Array = npt.NDArray[Any]


def default_shards(form: str, count: int) -> int:
    return 1 if form == "nanogpt" else max(1, -(-count // SHARD))


def check_shards(form: str, total: int, counts: dict[str, int]) -> None:
    """UserError where a split has fewer tokens than files, or the format only one file."""
    if form == "nanogpt" and total > 1:
        raise UserError("nanoGPT reads one file a split; leave --shards out.")
    for split, count in counts.items():
        if count < total:
            raise UserError(f"{split} has {count} tokens, too few for {total} files; lower --shards.")


def write_split(
    root: Path,
    form: str,
    split: str,
    count: int,
    pieces: Iterator[Array],
    vocabulary: int,
    total: int,
    progress: Callable[[int], None],
) -> None:
    """Write the files of a split; UserError at the first id outside of the vocabulary."""
    checked = (check_ids(piece, vocabulary, split) for piece in pieces)
    for shard in cut_into_shards(split, count, checked, id_type(vocabulary), total, progress):
        WRITERS[form](root, shard)
