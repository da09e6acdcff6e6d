"""nanoGPT's `train.bin` and `val.bin`: uint16 ids and nothing else. Its meta.pkl is never unpickled."""

from trainmark.workloads.tokens.formats import mapped
from trainmark.workloads.tokens.formats.mapped import UnfitTokens

NAME = "nanogpt"
DTYPE = "<u2"


def open_file(path):
    """Return the ids, memory-mapped."""
    size = mapped.size_of(path)
    if size % 2:
        raise UnfitTokens("{} has {} bytes, an odd number: nanoGPT's ids have two each.".format(path, size))
    return mapped.map_ids(path, DTYPE, 0, size // 2)
