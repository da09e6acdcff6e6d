"""The same picture under two classes: one of them is wrong, and only a person can say which."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from pathlib import Path

import numpy as np
import numpy.typing as npt

from trainmark.datasets.assemble import SplitParts
from trainmark.datasets.index import INDEX, NAMES, SHARDS
from trainmark.datasets.reading import Shards
from trainmark.datasets.trouble import MISLABELLED, Trouble


def mislabelled(root: Path, splits: Sequence[SplitParts], tolerated: bool) -> list[Trouble]:
    """Found by length and a checksum of the middle, and made sure of by comparing all bytes."""
    parts = [part for split in splits for part in split.parts]
    prints = np.concatenate([part.prints() for part in parts])
    labels = np.concatenate([part.rows()["label"] for part in parts])
    order = np.argsort(prints, kind="stable")
    ends = np.flatnonzero(np.diff(prints[order])) + 1
    starts = np.concatenate(([0], ends)).astype(np.int64)
    if not len(order):
        return []
    least, most = (function.reduceat(labels[order], starts) for function in (np.minimum, np.maximum))
    groups = np.split(order, ends)
    suspects = [groups[group].tolist() for group in np.flatnonzero(least != most)]
    if not suspects:
        return []
    pictures = _Written(root, splits)
    troubles = []
    for suspect in suspects:
        alike = sorted(suspect, key=pictures.read)
        for _, same in groupby(alike, key=pictures.read):
            numbers = sorted(same)
            if len(set(labels[numbers].tolist())) > 1:
                names = pictures.names(numbers)
                troubles += [
                    Trouble(name, (MISLABELLED,), tolerated, note=_others(names, name)) for name in names
                ]
    return troubles


def _others(names: Sequence[str], name: str) -> str:
    return ", ".join(other for other in names if other != name)


class _Written:
    """Pictures of the set that was just written, by their number over all splits."""

    def __init__(self, root: Path, splits: Sequence[SplitParts]) -> None:
        self._folders = [root / split.split for split in splits]
        self._rows: list[npt.NDArray[np.void]] = [
            np.load(folder / INDEX, mmap_mode="r", allow_pickle=False) for folder in self._folders
        ]
        self._firsts = np.cumsum([0, *(len(rows) for rows in self._rows)])

    def _place(self, number: int) -> tuple[int, int]:
        split = int(np.searchsorted(self._firsts, number, side="right")) - 1
        return split, number - int(self._firsts[split])

    def read(self, number: int) -> bytes:
        split, place = self._place(number)
        row = self._rows[split][place]
        folder = self._folders[split]
        shards = Shards(folder, tuple(_lines(folder / SHARDS)))
        try:
            return shards.read(int(row["shard"]), int(row["offset"]), int(row["size"]))
        finally:
            shards.close()

    def names(self, numbers: Sequence[int]) -> list[str]:
        places = [self._place(number) for number in numbers]
        names = {split: _lines(self._folders[split] / NAMES) for split, _ in places}
        return [f"{self._folders[split].name}/{names[split][place]}" for split, place in places]


def _lines(path: Path) -> list[str]:
    return path.read_bytes().decode("utf-8", "surrogateescape").split("\n")[:-1]
