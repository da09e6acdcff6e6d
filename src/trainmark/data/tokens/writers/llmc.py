"""Shards as llm.c reads them: `train_000000.bin`."""

from __future__ import annotations

from pathlib import Path

from trainmark.base.errors import UserError
from trainmark.data.files import whole_file
from trainmark.data.tokens.writers.shard import TokenShard
from trainmark.workloads.tokens.formats import llmc

LARGEST = (1 << 31) - 1  # its header counts in int32


def write(root: Path, shard: TokenShard) -> None:
    if shard.count > LARGEST:
        raise UserError(f"a file of llm.c's has at most {LARGEST:,} tokens; use more --shards.")
    with whole_file(root / f"{shard.split}_{shard.number:06d}.bin") as file:
        file.write(llmc.header(shard.count, shard.dtype))
        for piece in shard.pieces:
            file.write(piece.astype(shard.dtype).tobytes())
