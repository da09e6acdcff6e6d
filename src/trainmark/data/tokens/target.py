"""The folder that a token set is written into, split by split: its files whole or not there, meta.json last.

A set in the making has `.unfinished/meta.json` with what was asked for. The same command begins it anew: the
files come quicker than their checksums would be compared.
"""

from __future__ import annotations

import contextlib
import json
import shutil
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy.typing as npt

from trainmark.base.errors import UserError
from trainmark.data import checksums
from trainmark.data.files import write_whole
from trainmark.data.index import CHECKSUMS
from trainmark.data.tokens import arrow
from trainmark.data.tokens.source import check_ids, id_type
from trainmark.data.tokens.writers import llmc, megatron, nanogpt
from trainmark.data.tokens.writers.shard import cut_into_shards
from trainmark.workloads.tokens import dataset
from trainmark.workloads.tokens.formats.mapped import UnfitTokens


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
            self._same(before.get("plan", {}))
            return False
        if (self._marker / dataset.META).exists():
            self._same(_read(self._marker / dataset.META))
            self._empty()
        elif self.root.exists() and (not self.root.is_dir() or any(self.root.iterdir())):
            raise UserError(
                f"{self.root} exists and is no unfinished set; choose a folder that is new or empty."
            )
        self._marker.mkdir(parents=True, exist_ok=True)
        write_whole(self._marker / dataset.META, _json(self.plan))
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

    def _same(self, before: Mapping[str, Any]) -> None:
        for name, wanted in self.plan.items():
            if before.get(name) != wanted:
                raise UserError(
                    f"{self.root} was begun with {name} = {before.get(name)}, not {wanted}; "
                    "give the same arguments again, or choose another folder."
                )

    def _empty(self) -> None:
        for entry in self.root.iterdir():
            if entry != self._marker:
                shutil.rmtree(entry) if entry.is_dir() else entry.unlink()


def write_meta(root: Path, content: Mapping[str, Any]) -> int:
    """Write checksums.txt, then meta.json, which makes a set whole; return the bytes of the files."""
    files = [path for path in sorted(root.rglob("*")) if path.is_file() and not _hidden(path, root)]
    sums = {path.relative_to(root).as_posix(): checksums.of_file(path) for path in files}
    text = _json(content)
    sums[dataset.META] = checksums.of_bytes(text)
    sums.pop(CHECKSUMS, None)
    checksums.write_checksums(root, sums)
    write_whole(root / dataset.META, text)
    return sum(path.stat().st_size for path in files)


def _hidden(path: Path, root: Path) -> bool:
    return any(part.startswith(".") for part in path.relative_to(root).parts)


def _json(value: Mapping[str, Any]) -> bytes:
    return (json.dumps(dict(value), indent=1, ensure_ascii=False, allow_nan=False) + "\n").encode()


def _read(path: Path) -> dict[str, Any]:
    try:
        value: dict[str, Any] = dict(json.loads(path.read_bytes()))
        return value
    except (ValueError, TypeError) as error:
        raise UserError(f"{path} is damaged ({error}); remove {path.parents[1]} and begin again.") from error


WRITERS = {"llmc": llmc.write, "nanogpt": nanogpt.write, "megatron": megatron.write, arrow.NAME: arrow.write}
SHARD_TOKENS = 100_000_000  # tokens of a file, as in llm.c's FineWeb
Array = npt.NDArray[Any]


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
