"""What a writer is given: one file of a split, with the ids that go into it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class TokenShard:
    """Number `number` of `total` files of a split, with `count` ids of `dtype` in pieces."""

    split: str
    number: int
    total: int
    count: int
    dtype: np.dtype[Any]
    pieces: Iterator[Array]


def cut_into_shards(
    split: str,
    count: int,
    pieces: Iterator[Array],
    dtype: np.dtype[Any],
    total: int,
    progress: Callable[[int], None],
) -> Iterator[TokenShard]:
    """Cut a stream into files of the same size, to be used up in turn; the first few have one id more."""
    stream = _Stream(pieces, progress)
    for number in range(total):
        size = count // total + (number < count % total)
        yield TokenShard(split, number, total, size, dtype, stream.take(size))


class _Stream:
    def __init__(self, pieces: Iterator[Array], progress: Callable[[int], None]) -> None:
        self._pieces, self._progress = pieces, progress
        self._left: Array | None = None

    def take(self, count: int) -> Iterator[Array]:
        while count:
            piece = self._left if self._left is not None and len(self._left) else next(self._pieces)
            part, self._left = piece[:count], piece[count:]
            count -= len(part)
            if len(part):
                yield part
                self._progress(len(part))
