"""`train.bin` and `val.bin` as nanoGPT reads them."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from trainmark.base.errors import UserError
from trainmark.data.files import whole_file
from trainmark.data.tokens.writers.shard import TokenShard
from trainmark.workloads.tokens.formats import nanogpt


def write(root: Path, shard: TokenShard) -> None:
    if shard.total > 1:
        raise UserError("nanoGPT reads one file a split; leave --shards out.")
    if shard.dtype != np.dtype(nanogpt.DTYPE):
        raise UserError("nanoGPT's ids are below 65,536; use --to llmc for a larger vocabulary.")
    with whole_file(root / f"{shard.split}.bin") as file:
        for piece in shard.pieces:
            file.write(piece.astype(shard.dtype).tobytes())
