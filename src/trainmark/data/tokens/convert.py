"""A token set in another format; MLM records from a corpus, and to and from BERT's TFRecords."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from trainmark.base.errors import UserError, nearest
from trainmark.data.files import whole_file
from trainmark.data.jobs import Progress
from trainmark.data.tokens import arrow, bert_records
from trainmark.data.tokens.masking import MARKS, SHORTEST, Masking, Special, plan, records
from trainmark.data.tokens.source import TOKEN_FORMATS, TokenSource, TokenSplit, check_ids, open_token_source
from trainmark.data.tokens.target import (
    TokenTarget,
    check_shards,
    cut_into_shards,
    default_shards,
    write_split,
)
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
        return lambda: records(masking, name, split.pieces(), split.count)

    counts = {
        name: sum(len(lengths) for _, _, lengths in plan(masking, name, split.count))
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
