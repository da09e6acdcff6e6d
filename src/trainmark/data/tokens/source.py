"""A folder of tokens recognized, and read: its splits in pieces, its vocabulary, and what is known of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from trainmark.base.errors import UserError
from trainmark.data.files import DATASET
from trainmark.data.tokens import arrow, bert_records
from trainmark.workloads.tokens import dataset
from trainmark.workloads.tokens.formats import mlm
from trainmark.workloads.tokens.formats.mapped import UnfitTokens
from trainmark.workloads.tokens.loader import sequences_in

#: What `convert --to` takes for tokens; `tfrecord` is a name of pictures too, and is decided by the source.
TOKEN_FORMATS = ("llmc", "nanogpt", "megatron", "arrow", "mlm")
TOKEN_ENDINGS = (".bin", ".arrow", mlm.SUFFIX)
ARROW_NAMES = ("dataset_dict.json", "state.json")


def is_token_set(path: Path) -> bool:
    """Whether a folder holds token files, or is to hold them and is unfinished."""
    if not path.is_dir() or (path / DATASET).exists():
        return False
    if (path / dataset.UNFINISHED / dataset.META).exists():
        return True
    try:
        names = dataset.names_in(str(path))
    except UnfitTokens as error:
        raise UserError(str(error)) from error
    return any(name in ARROW_NAMES or name.endswith(TOKEN_ENDINGS) for name in names) or bert_records.holds(
        path
    )


def token_format(path: Path) -> str:
    """Return the format of a folder of tokens; UserError, in one sentence, where it has none."""
    if not path.is_dir():
        raise UserError(f"{path} does not exist; name the folder of a set.")
    try:
        if bert_records.holds(path) and not (path / dataset.UNFINISHED).exists():
            return bert_records.NAME
        return str(dataset.detect(str(path)))
    except UnfitTokens as error:
        raise UserError(str(error)) from error


SPLITS = ("train", "val")
PIECE = 1 << 22  # tokens that are read at a time
ROWS = 4096  # records that are read at a time

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class TokenSplit:
    """`count` tokens, or records; `pieces()` gives arrays of them in order, one or more times."""

    count: int
    pieces: Callable[[], Iterator[Array]]


@dataclass(frozen=True)
class TokenSource:
    """`records` where the splits are MLM records and no streams of tokens; `about` is its meta.json."""

    path: Path
    format: str
    splits: dict[str, TokenSplit]
    records: bool
    about: dict[str, Any] = field(default_factory=dict)

    @property
    def total(self) -> int:
        return sum(split.count for split in self.splits.values())

    def vocabulary(self) -> int:
        """Return what meta.json says, else one more than the largest id, for which all is read."""
        if stated := self.about.get("vocabulary"):
            return int(stated)
        return largest(self) + 1


def open_token_source(path: Path) -> TokenSource:
    form = token_format(path)
    try:
        about = dict(dataset.describe(str(path)))
        files = files_by_split(path, form)
        if not files:
            raise UserError(f"{path} has no files of a split; give them names that begin with train and val.")
        splits = {split: _split(path, form, split, mine) for split, mine in files.items()}
    except UnfitTokens as error:
        raise UserError(str(error)) from error
    return TokenSource(path, form, splits, form in (mlm.NAME, bert_records.NAME), about)


def _split(path: Path, form: str, split: str, files: list[Path]) -> TokenSplit:
    if form == arrow.NAME:
        count = arrow.count(files)
    elif form == bert_records.NAME:
        count = sum(map(bert_records.count, files))
    else:
        count = dataset.open_split(str(path), split).count
    return TokenSplit(count, lambda: read_pieces(form, files))


def files_by_split(root: Path, form: str) -> dict[str, list[Path]]:
    """Return the files of each split that has some."""
    if form == arrow.NAME:
        return arrow.splits(root)
    if form == bert_records.NAME:
        splits = {split: bert_records.files_of(root, split) for split in SPLITS}
    else:
        splits = {split: list(map(Path, dataset.files_of(str(root), form, split))) for split in SPLITS}
    return {split: files for split, files in splits.items() if files}


def read_pieces(form: str, files: list[Path]) -> Iterator[Array]:
    """Yield arrays of ids, or of records, one file behind the other."""
    if form == arrow.NAME:
        yield from arrow.read(files)
    elif form == bert_records.NAME:
        yield from bert_records.read(files, ROWS)
    else:
        for path in files:
            opened = dataset.READERS[form].open_file(str(path))
            step = ROWS if opened.dtype.names else PIECE
            for at in range(0, len(opened), step):
                yield opened[at : at + step]


def largest(source: TokenSource) -> int:
    """Return the largest id of all splits, by reading all of them."""
    fields = ("tokens", "labels") if source.records else ()
    return max(
        (
            int(values.max())
            for split in source.splits.values()
            for piece in split.pieces()
            for values in ([piece[name] for name in fields] or [piece])
            if values.size
        ),
        default=-1,
    )


def check_batch(path: Path, batch: int, length: int) -> None:
    """UserError where the training part does not fill one batch of sequences, or no loader reads it."""
    try:
        opened = dataset.open_split(str(path), "train")
    except UnfitTokens as error:
        raise UserError(str(error)) from error
    sequences = sequences_in(opened, length)
    if sequences < batch:
        raise UserError(
            f"{path} has {sequences} training sequences, fewer than a batch of {batch}; "
            "lower --batch or --length."
        )


def check_ids(ids: Array, vocabulary: int, name: str) -> Array:
    """Return the ids; UserError where one lies outside of the vocabulary."""
    if ids.size and (int(ids.max()) >= vocabulary or int(ids.min()) < 0):
        wrong = int(ids.max()) if int(ids.max()) >= vocabulary else int(ids.min())
        raise UserError(f"{name} has the id {wrong}, and its vocabulary has {vocabulary}.")
    return ids


def id_type(vocabulary: int) -> np.dtype[Any]:
    return np.dtype("<u2" if vocabulary <= 1 << 16 else "<u4")
