"""The folder that a token set is written into, split by split: its files whole or not there, meta.json last.

A set in the making has `.unfinished/meta.json` with what was asked for. The same command begins it anew: the
files come quicker than their checksums would be compared.
"""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from trainmark.base.errors import UserError
from trainmark.data.files import CHECKSUMS, checksum, checksum_of, whole_file, write_checksums, write_whole
from trainmark.data.journal import json_bytes, read_plan, refuse_other_content, require_same_plan
from trainmark.data.tokens import arrow
from trainmark.data.tokens.source import check_ids, id_type
from trainmark.workloads.tokens import dataset
from trainmark.workloads.tokens.formats import llmc, megatron, nanogpt
from trainmark.workloads.tokens.formats.mapped import UnfitTokens

Array = npt.NDArray[Any]


class TokenTarget:
    """One folder; `plan` is what decides over its bytes."""

    def __init__(self, root: Path, plan: Mapping[str, Any]) -> None:
        self.root, self.plan = root, dict(plan)
        self._marker = root / dataset.UNFINISHED

    def begin(self) -> bool:
        """Make the folder ready; False where the set is there already, whole, from the same plan."""
        if self.root.is_dir() and (self.root / dataset.META).exists() and not self._marker.exists():
            try:
                before = dict(dataset.describe(str(self.root)))
            except UnfitTokens as error:
                raise UserError(str(error)) from error
            require_same_plan(self.root, self.plan, before.get("plan", {}))
            return False
        if (self._marker / dataset.META).exists():
            require_same_plan(self.root, self.plan, read_plan(self._marker / dataset.META))
            self._empty()
        else:
            refuse_other_content(self.root)
        self._marker.mkdir(parents=True, exist_ok=True)
        write_whole(self._marker / dataset.META, json_bytes(self.plan))
        return True

    @contextlib.contextmanager
    def cleared_on_error(self) -> Iterator[None]:
        """Leave nothing behind where the data turn out not to do."""
        try:
            yield
        except UserError:
            self._empty()
            shutil.rmtree(self._marker)
            self.root.rmdir()
            raise

    def finish(self, meta: Mapping[str, Any]) -> int:
        """Write the checksums and meta.json of the files that are there; return the bytes of all."""
        content = {"trainmark_tokens": dataset.VERSION, **meta, "plan": self.plan}
        size = write_meta(self.root, content)
        shutil.rmtree(self._marker)
        return size

    def _empty(self) -> None:
        for entry in self.root.iterdir():
            if entry != self._marker:
                shutil.rmtree(entry) if entry.is_dir() else entry.unlink()


def write_meta(root: Path, content: Mapping[str, Any]) -> int:
    """Write checksums.txt, then meta.json, which makes a set whole; return the bytes of the files."""
    files = [path for path in sorted(root.rglob("*")) if path.is_file() and not _hidden(path, root)]
    sums = {path.relative_to(root).as_posix(): checksum_of(path) for path in files}
    text = json_bytes(content)
    sums[dataset.META] = checksum(text)
    sums.pop(CHECKSUMS, None)
    write_checksums(root, sums)
    write_whole(root / dataset.META, text)
    return sum(path.stat().st_size for path in files)


def _hidden(path: Path, root: Path) -> bool:
    return any(part.startswith(".") for part in path.relative_to(root).parts)


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
    left: Array = np.empty(0, dtype)

    def take(wanted: int) -> Iterator[Array]:
        nonlocal left
        while wanted:
            piece = left if len(left) else next(pieces)
            part, left = piece[:wanted], piece[wanted:]
            wanted -= len(part)
            if len(part):
                yield part
                progress(len(part))

    for number in range(total):
        size = count // total + (number < count % total)
        yield TokenShard(split, number, total, size, dtype, take(size))


LARGEST_LLMC = (1 << 31) - 1  # its header counts in int32
MEGATRON_SEQUENCE = 1 << 16  # tokens of a sequence, each of which is a document


def write_llmc(root: Path, shard: TokenShard) -> None:
    if shard.count > LARGEST_LLMC:
        raise UserError(f"a file of llm.c's has at most {LARGEST_LLMC:,} tokens; use more --shards.")
    path = root / f"{shard.split}_{shard.number:06d}.bin"
    _write_ids(path, shard, shard.dtype, llmc.header(shard.count, shard.dtype))


def write_nanogpt(root: Path, shard: TokenShard) -> None:
    if shard.dtype != np.dtype(nanogpt.DTYPE):
        raise UserError("nanoGPT's ids are below 65,536; use --to llmc for a larger vocabulary.")
    _write_ids(root / f"{shard.split}.bin", shard, shard.dtype)


def write_megatron(root: Path, shard: TokenShard) -> None:
    """Write the index last: a `.bin` without one is no set."""
    # Megatron has no uint32.
    dtype = shard.dtype if shard.dtype == np.dtype("<u2") else np.dtype("<i4")
    path = root / f"{shard.split}_{shard.number:06d}.bin"
    _write_ids(path, shard, dtype)
    whole, rest = divmod(shard.count, MEGATRON_SEQUENCE)
    lengths = [MEGATRON_SEQUENCE] * whole + ([rest] if rest else [])
    write_whole(path.with_suffix(".idx"), megatron.index_bytes(lengths, dtype))


def write_arrow(root: Path, shard: TokenShard) -> None:
    arrow.write(root / shard.split / arrow.file_name(shard.number, shard.total), shard.pieces)


def _write_ids(path: Path, shard: TokenShard, dtype: np.dtype[Any], header: bytes = b"") -> None:
    with whole_file(path) as file:
        file.write(header)
        for piece in shard.pieces:
            file.write(piece.astype(dtype).tobytes())


WRITERS = {
    "llmc": write_llmc,
    "nanogpt": write_nanogpt,
    "megatron": write_megatron,
    arrow.NAME: write_arrow,
}
SHARD_TOKENS = 100_000_000  # tokens of a file, as in llm.c's FineWeb


def default_shards(form: str, count: int) -> int:
    return 1 if form == "nanogpt" else max(1, -(-count // SHARD_TOKENS))


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
