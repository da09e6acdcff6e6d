"""MLM records from a stream of tokens: two segments, a next-sentence label, masks (Devlin et al. 2019).

A record is [CLS] A [SEP] B [SEP]. B follows A in the corpus (label 0), or in half of the records comes from
another place (label 1). Nine in ten records have the full length, the others a random one. Of its tokens 15 %
are predicted: 80 % of those become [MASK], 10 % a random id, 10 % stay. Every choice follows from (seed,
split, the number of the record).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from trainmark.workloads.bert.shared import predictions
from trainmark.workloads.common import chance
from trainmark.workloads.tokens.formats import mlm

ROWS = 4096  # records that are made at a time; a random B comes from among their tokens
SHORTEST = 8
MARKS = 3  # [CLS] and two [SEP]
SHORT_SHARE, NEXT_SHARE, MASKED_SHARE, RANDOM_SHARE, PREDICTED = 0.1, 0.5, 0.8, 0.1, 0.15
LENGTHS, CUTS, NEXT, PLACES, CHOICE, FATE, RANDOM = range(7)  # what a random number is for
SPLITS = {"train": 1, "val": 2}

Array = npt.NDArray[Any]


class Special(NamedTuple):
    """The ids of the marks."""

    pad: int
    cls: int
    sep: int
    mask: int


@dataclass(frozen=True)
class Masking:
    """How records are made: of `length` tokens, from ids below `vocabulary`."""

    length: int
    vocabulary: int
    special: Special
    seed: int

    @property
    def dtype(self) -> np.dtype[Any]:
        size = max(self.vocabulary, *(number + 1 for number in self.special))
        made: np.dtype[Any] = mlm.record(self.length, predictions(self.length), size)
        return made

    def uniform(self, split: str, kind: int, counters: Array) -> Array:
        """Return a number in [0, 1) for each counter."""
        bits = chance.bits(chance.key(self.seed, SPLITS[split], kind), counters.astype(np.uint64))
        numbers: Array = (bits >> np.uint64(11)).astype(np.float64) * chance.UNIT
        return numbers

    def lengths(self, split: str, first: int, count: int) -> Array:
        """Return the valid tokens of each record."""
        numbers = np.arange(first, first + count)
        short = self.uniform(split, LENGTHS, 2 * numbers) < SHORT_SHARE
        span = self.length - SHORTEST + 1
        drawn = SHORTEST + (self.uniform(split, LENGTHS, 2 * numbers + 1) * span).astype(np.int64)
        return np.where(short, drawn, self.length)


def plan(masking: Masking, split: str, tokens: int) -> list[tuple[int, int, Array]]:
    """Return for each group of records its first record, its first token, and the lengths of the records."""
    groups: list[tuple[int, int, Array]] = []
    first = at = 0
    while True:
        lengths = masking.lengths(split, first, ROWS)
        ends = at + np.cumsum(lengths - MARKS)
        fitting = int(np.searchsorted(ends, tokens, "right"))
        if fitting:
            groups.append((first, at, lengths[:fitting]))
        if fitting < ROWS:
            return groups
        first, at = first + ROWS, int(ends[-1])


def records(masking: Masking, split: str, pieces: Iterator[Array], tokens: int) -> Iterator[Array]:
    """Yield the records of a corpus that comes in pieces."""
    left: Array = np.empty(0, np.int64)
    for first, _, lengths in plan(masking, split, tokens):
        needed = int((lengths - MARKS).sum())
        parts, size = [left], len(left)
        while size < needed:
            parts.append(next(pieces))
            size += len(parts[-1])
        block = np.concatenate(parts).astype(np.int64)
        left = block[needed:]
        yield _group(masking, split, first, lengths, block[:needed])


def _group(masking: Masking, split: str, first: int, lengths: Array, block: Array) -> Array:
    numbers = first + np.arange(len(lengths))
    body = lengths - MARKS
    begins = np.cumsum(body) - body
    ones = 1 + (masking.uniform(split, CUTS, numbers) * (body - 1)).astype(np.int64)  # tokens of A
    unrelated = masking.uniform(split, NEXT, numbers) < NEXT_SHARE
    places = (masking.uniform(split, PLACES, numbers) * (len(block) - (body - ones) + 1)).astype(np.int64)
    seconds = np.where(unrelated, places, begins + ones)
    column = np.arange(masking.length)[None]
    ends, cuts = lengths[:, None], ones[:, None] + 1  # the first [SEP] stands at `cuts`
    in_first = (column > 0) & (column < cuts)
    in_second = (column > cuts) & (column < ends - 1)
    from_first = begins[:, None] + column - 1
    from_second = seconds[:, None] + column - cuts - 1
    where = np.where(in_first, from_first, np.where(in_second, from_second, 0))
    tokens = np.where(in_first | in_second, block[where], masking.special.pad)
    tokens[:, 0] = masking.special.cls
    tokens = np.where((column == cuts) | (column == ends - 1), masking.special.sep, tokens)
    rows = np.zeros(len(lengths), masking.dtype)
    rows["segments"] = (column > cuts) & (column < ends)
    rows["lengths"], rows["next_sentence"] = lengths, unrelated
    positions, labels = _mask(masking, split, numbers, tokens, in_first | in_second, lengths)
    rows["tokens"], rows["positions"], rows["labels"] = tokens, positions, labels
    return rows


def _mask(
    masking: Masking, split: str, numbers: Array, tokens: Array, candidates: Array, lengths: Array
) -> tuple[Array, Array]:
    """Hide the predicted tokens in place; return their positions in order, and what stood there."""
    cells = numbers[:, None] * masking.length + np.arange(masking.length)
    most = predictions(masking.length)
    wanted = np.clip(np.rint(PREDICTED * lengths), 1, most).astype(np.int64)
    draws = np.where(candidates, masking.uniform(split, CHOICE, cells), 2.0)
    ranked = np.argsort(draws, axis=1, kind="stable")[:, :most]
    used = np.arange(most)[None] < np.minimum(wanted, candidates.sum(axis=1))[:, None]
    positions = np.sort(np.where(used, ranked, masking.length), axis=1)  # those without a use go last
    positions = np.where(used, positions, 0)
    labels = np.where(used, np.take_along_axis(tokens, positions, 1), -1)
    fate = np.take_along_axis(masking.uniform(split, FATE, cells), positions, 1)
    other = np.take_along_axis(masking.uniform(split, RANDOM, cells), positions, 1)
    random = (other * masking.vocabulary).astype(np.int64)
    hidden = np.where(fate < MASKED_SHARE, masking.special.mask, random)
    hidden = np.where(fate < MASKED_SHARE + RANDOM_SHARE, hidden, labels)
    row, place = np.nonzero(used)
    tokens[row, positions[row, place]] = hidden[row, place]
    return positions, labels
