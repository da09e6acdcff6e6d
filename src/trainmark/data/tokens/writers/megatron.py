"""`.bin` and `.idx` as Megatron reads them; the stream is cut into sequences of one length."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from trainmark.data.files import whole_file, write_whole
from trainmark.data.tokens.writers.shard import TokenShard
from trainmark.workloads.tokens.formats import megatron

SEQUENCE = 1 << 16  # tokens of a sequence, each of which is a document


def write(root: Path, shard: TokenShard) -> None:
    """Write the index last: a `.bin` without one is no set."""
    # Megatron has no uint32.
    dtype = shard.dtype if shard.dtype == np.dtype("<u2") else np.dtype("<i4")
    path = root / f"{shard.split}_{shard.number:06d}.bin"
    with whole_file(path) as file:
        for piece in shard.pieces:
            file.write(piece.astype(dtype).tobytes())
    whole, rest = divmod(shard.count, SEQUENCE)
    lengths = [SEQUENCE] * whole + ([rest] if rest else [])
    write_whole(path.with_suffix(".idx"), megatron.index_bytes(lengths, dtype))
