"""A token set in another format; MLM records from a corpus, and to and from BERT's TFRecords.

A record (Devlin et al. 2019) is [CLS] A [SEP] B [SEP]. B follows A in the corpus (label 0), or in half of the
records comes from another place (label 1). Nine in ten records have the full length, the others a random one.
Of its tokens 15 % are predicted: 80 % of those become [MASK], 10 % a random id, 10 % stay. Every choice
follows from (seed, split, the number of the record).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from trainmark.base.errors import UserError, nearest
from trainmark.data.files import whole_file
from trainmark.data.jobs import Progress
from trainmark.data.tokens import arrow, bert_records
from trainmark.data.tokens.source import TOKEN_FORMATS, TokenSource, TokenSplit, check_ids, open_token_source
from trainmark.data.tokens.target import (
    TokenTarget,
    check_shards,
    cut_into_shards,
    default_shards,
    write_split,
)
from trainmark.workloads.bert.shared import predictions
from trainmark.workloads.common import chance
from trainmark.workloads.tokens import feed
from trainmark.workloads.tokens.formats import mlm

LENGTH = 128
LONGEST = 1 << 16
Array = npt.NDArray[Any]


@dataclass(frozen=True)
class TokenRequest:
    """What is to be written where; `length`, `special` and `seed` are for MLM records from a corpus."""

    source: Path
    target: Path
    to: str
    shards: int | None = None
    vocabulary: int | None = None
    length: int = LENGTH
    special: tuple[int, ...] | None = None
    seed: int = 0


@dataclass(frozen=True)
class ConvertedTokens:
    """What there is now; `already` where it was there before. `unit` is tokens or sequences."""

    already: bool
    unit: str
    splits: dict[str, int]
    vocabulary: int
    bytes: int


def convert_tokens(request: TokenRequest, progress: Progress) -> ConvertedTokens:
    known = (*TOKEN_FORMATS, bert_records.NAME)
    if request.to not in known:
        raise UserError(f"there is no format '{request.to}' of tokens{nearest(request.to, known)}")
    source = open_token_source(request.source)
    if request.target.resolve() == request.source.resolve():
        raise UserError(f"{request.target} is the source itself; choose another folder.")
    if request.to == arrow.NAME:
        arrow.import_pyarrow()
    if source.records != (request.to in (mlm.NAME, bert_records.NAME)) and request.to != mlm.NAME:
        raise UserError(_unlike(source, request.to))
    vocabulary = request.vocabulary or source.vocabulary()
    if request.to == "nanogpt" and vocabulary > 1 << 16:
        raise UserError("nanoGPT's ids are below 65,536; use --to llmc for a larger vocabulary.")
    if request.to in (mlm.NAME, bert_records.NAME):
        return _to_records(request, source, vocabulary, progress)
    return _to_stream(request, source, vocabulary, progress)


def _unlike(source: TokenSource, to: str) -> str:
    if source.records:
        return f"{source.path} has MLM records, which are no stream of tokens; use --to mlm or tfrecord."
    return f"{source.path} is a stream of tokens; make MLM records of it first, by --to mlm."


def _plan(request: TokenRequest, source: TokenSource, vocabulary: int, **more: Any) -> dict[str, Any]:
    return {
        "made_by": "trainmark data convert",
        "format": request.to,
        "source_format": source.format,
        "source_checksum": _checksum(source),
        "vocabulary": vocabulary,
        "shards": request.shards,
        **more,
    }


def _checksum(source: TokenSource) -> str:
    """Return one number for the bytes of a source, so that another is not taken for it."""

    class Files:
        paths = sorted(str(path) for path in source.path.rglob("*") if path.is_file())

    return str(feed.checksum(source.path, Files))


def _to_stream(
    request: TokenRequest, source: TokenSource, vocabulary: int, progress: Progress
) -> ConvertedTokens:
    splits = {name: split.count for name, split in source.splits.items()}
    shards = {name: request.shards or default_shards(request.to, count) for name, count in splits.items()}
    for name, total in shards.items():
        check_shards(request.to, total, {name: splits[name]})
    target = TokenTarget(request.target, _plan(request, source, vocabulary))
    if not target.begin():
        return ConvertedTokens(True, "tokens", splits, vocabulary, 0)
    count = _counter(progress, source.total)
    with target.cleared_on_error():
        for name, split in source.splits.items():
            ids = split.count, split.pieces()
            write_split(request.target, request.to, name, *ids, vocabulary, shards[name], count)
    if request.to == arrow.NAME:
        arrow.finish(request.target, shards)
    carried = _carried(source, "source", "entropy", "plateaus")
    meta: dict[str, Any] = {"format": request.to, "vocabulary": vocabulary, "splits": splits, **carried}
    return ConvertedTokens(False, "tokens", splits, vocabulary, target.finish(meta))


def _to_records(
    request: TokenRequest, source: TokenSource, vocabulary: int, progress: Progress
) -> ConvertedTokens:
    if source.records:
        counts = {name: split.count for name, split in source.splits.items()}
        dtype, makers = _known(source, vocabulary)
        more: dict[str, Any] = {}
        carried = _carried(source, "special", "source")
    else:
        masking = _masking(request, vocabulary)
        counts, makers = _made(masking, source)
        dtype, vocabulary = masking.dtype, max(vocabulary, *(number + 1 for number in masking.special))
        more = {"length": masking.length, "special": list(masking.special), "masking": masking.seed}
        carried = {"special": masking.special._asdict(), **_carried(source, "source")}
    target = TokenTarget(request.target, _plan(request, source, vocabulary, **more))
    if not target.begin():
        return ConvertedTokens(True, "sequences", counts, vocabulary, 0)
    count = _counter(progress, sum(counts.values()))
    write = _write_mlm if request.to == mlm.NAME else _write_bert
    with target.cleared_on_error():
        for name, maker in makers.items():
            pieces = _checked(maker(), vocabulary, name, count)
            write(request.target, name, counts[name], dtype, pieces, request.shards or 1)
    meta: dict[str, Any] = {"format": request.to, "vocabulary": vocabulary, "splits": counts, **carried}
    return ConvertedTokens(False, "sequences", counts, vocabulary, target.finish(meta))


def _carried(source: TokenSource, *names: str) -> dict[str, Any]:
    """Return what the source says of itself and stays true."""
    return {name: source.about[name] for name in names if name in source.about}


def _known(
    source: TokenSource, vocabulary: int
) -> tuple[np.dtype[Any], dict[str, Callable[[], Iterator[Array]]]]:
    first = next(iter(source.splits.values()))
    piece = next(first.pieces())
    shape = piece.dtype["tokens"].shape[0], piece.dtype["labels"].shape[0]
    dtype: np.dtype[Any] = mlm.record(*shape, vocabulary)
    return dtype, {name: split.pieces for name, split in source.splits.items()}


def _masking(request: TokenRequest, vocabulary: int) -> Masking:
    if not SHORTEST <= request.length < LONGEST:
        raise UserError(f"--length {request.length}: a record has {SHORTEST} to {LONGEST - 1:,} tokens.")
    if request.special is None:
        special = Special(*range(vocabulary, vocabulary + 4))
    elif len(set(request.special)) != 4 or min(request.special) < 0:
        raise UserError("--special: give four different ids, of [PAD], [CLS], [SEP] and [MASK].")
    else:
        special = Special(*request.special)
    return Masking(request.length, vocabulary, special, request.seed)


def _made(
    masking: Masking, source: TokenSource
) -> tuple[dict[str, int], dict[str, Callable[[], Iterator[Array]]]]:
    def maker(name: str, split: TokenSplit) -> Callable[[], Iterator[Array]]:
        return lambda: mlm_records(masking, name, split.pieces(), split.count)

    counts = {
        name: sum(len(lengths) for _, _, lengths in record_groups(masking, name, split.count))
        for name, split in source.splits.items()
    }
    for name, number in counts.items():
        if not number:
            least = masking.length - MARKS
            raise UserError(
                f"{source.path}: {name} has {source.splits[name].count} tokens, too few for a record "
                f"of {least} and its marks; lower --length."
            )
    return counts, {name: maker(name, split) for name, split in source.splits.items()}


def _checked(
    pieces: Iterator[Array], vocabulary: int, name: str, count: Callable[[int], None]
) -> Iterator[Array]:
    for rows in pieces:
        check_ids(rows["tokens"], vocabulary, name)
        check_ids(np.maximum(rows["labels"], 0), vocabulary, name)
        yield rows
        count(len(rows))


def _write_mlm(
    root: Path, split: str, count: int, dtype: np.dtype[Any], pieces: Iterator[Array], shards: int
) -> None:
    """Write NumPy's header and the rows behind it, a piece at a time."""
    for number, part in enumerate(_parts(pieces, count, shards)):
        name = f"{split}{mlm.SUFFIX}" if shards == 1 else f"{split}_{number:06d}{mlm.SUFFIX}"
        size = count // shards + (number < count % shards)
        with whole_file(root / name) as file:
            fields = {"descr": np.lib.format.dtype_to_descr(dtype), "fortran_order": False, "shape": (size,)}
            np.lib.format.write_array_header_1_0(file, fields)
            for rows in part:
                file.write(rows.astype(dtype).tobytes())


def _write_bert(
    root: Path, split: str, count: int, dtype: np.dtype[Any], pieces: Iterator[Array], shards: int
) -> None:
    for number, part in enumerate(_parts(pieces, count, shards)):
        bert_records.write(root / f"{split}-{number:05d}-of-{shards:05d}.tfrecord", part)


def _parts(pieces: Iterator[Array], count: int, shards: int) -> Iterator[Iterator[Array]]:
    """Cut the rows into files of the same number; each is to be used up in turn."""
    for shard in cut_into_shards("", count, pieces, np.dtype("u1"), shards, lambda number: None):
        yield shard.pieces


def _counter(progress: Progress, total: int) -> Callable[[int], None]:
    done = 0

    def count(number: int) -> None:
        nonlocal done
        done += number
        progress(done, total)

    return count


ROWS = 4096  # records that are made at a time; a random B comes from among their tokens
SHORTEST = 8
MARKS = 3  # [CLS] and two [SEP]
SHORT_SHARE, NEXT_SHARE, MASKED_SHARE, RANDOM_SHARE, PREDICTED = 0.1, 0.5, 0.8, 0.1, 0.15
LENGTHS, CUTS, NEXT, PLACES, CHOICE, FATE, RANDOM = range(7)  # what a random number is for
SPLIT_NUMBER = {"train": 1, "val": 2}


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
        bits = chance.bits(chance.key(self.seed, SPLIT_NUMBER[split], kind), counters.astype(np.uint64))
        numbers: Array = (bits >> np.uint64(11)).astype(np.float64) * chance.UNIT
        return numbers

    def lengths(self, split: str, first: int, count: int) -> Array:
        """Return the valid tokens of each record."""
        numbers = np.arange(first, first + count)
        short = self.uniform(split, LENGTHS, 2 * numbers) < SHORT_SHARE
        span = self.length - SHORTEST + 1
        drawn = SHORTEST + (self.uniform(split, LENGTHS, 2 * numbers + 1) * span).astype(np.int64)
        return np.where(short, drawn, self.length)


def record_groups(masking: Masking, split: str, tokens: int) -> list[tuple[int, int, Array]]:
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


def mlm_records(masking: Masking, split: str, pieces: Iterator[Array], tokens: int) -> Iterator[Array]:
    """Yield the records of a corpus that comes in pieces."""
    left: Array = np.empty(0, np.int64)
    for first, _, lengths in record_groups(masking, split, tokens):
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
