"""From one format into another: listed, cut into shards, written in parallel, put together."""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from pathlib import Path

import numpy as np

from trainmark.base.errors import UserError
from trainmark.data import formats
from trainmark.data.convert_shard import TargetShard, convert_shard
from trainmark.data.files import ImageDataset, Shards, read_dataset, read_index
from trainmark.data.jobs import Job, Progress, no_progress, results
from trainmark.data.journal import Assembly, Journal, SplitParts
from trainmark.data.picture import (
    EMPTY_CLASS,
    MISLABELLED,
    TOLERATED_IN_SET,
    UNREADABLE_FOLDER,
    PictureDefect,
)
from trainmark.data.records import Loose, Sharded
from trainmark.data.source import ImageSource, ListingSummary, open_source, write_listing

SEED = 0
#: Pictures that are files of their own are linked or copied so many at a time.
LOOSE_TASK = 1000


@dataclass(frozen=True)
class ConvertRequest:
    """`seed` None keeps the order of the source; only `train` is ever shuffled."""

    source: Path
    target: Path
    to: str
    seed: int | None = SEED
    shards: int | None = None
    records_per_shard: int | None = None
    on_bad: str = "stop"
    keep: frozenset[str] = TOLERATED_IN_SET
    workers: int = 1

    def plan(self) -> dict[str, object]:
        """What must be the same for a conversion to go on where it was stopped."""
        return {
            "converted_from": str(self.source.resolve()),
            "to": self.to,
            "shuffle": self.seed,
            "shards": self.shards,
            "records_per_shard": self.records_per_shard,
            "keep": sorted(self.keep),
        }

    def bounds(self, split: str, count: int) -> list[int]:
        """Where the shards of a split begin, and where the last one ends; they differ by one record."""
        to = formats.named(self.to)
        if not isinstance(to, Sharded):
            return [*range(0, count, LOOSE_TASK), count]
        if self.records_per_shard:
            return [*range(0, count, self.records_per_shard), count]
        shards = max(1, min(self.shards or to.shard_count(split, count), count))
        return [count * number // shards for number in range(shards + 1)]

    def target_shards(
        self, source: ImageSource, listed: dict[str, ListingSummary], journal: Path
    ) -> list[TargetShard]:
        return [
            TargetShard(
                split=split,
                number=number,
                total=len(bounds) - 1,
                records=bounds[number + 1] - first,
                largest=summary.largest,
                source=source,
                to=self.to,
                target=self.target,
                journal=journal,
                first=first,
                keep=self.keep,
                on_bad=self.on_bad,
            )
            for split, summary in listed.items()
            for bounds in [self.bounds(split, summary.count)]
            for number, first in enumerate(bounds[:-1])
        ]


def mislabelled(root: Path, splits: Sequence[SplitParts], tolerated: bool) -> list[PictureDefect]:
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
                    PictureDefect(name, (MISLABELLED,), tolerated, note=_others(names, name))
                    for name in names
                ]
    return troubles


def _others(names: Sequence[str], name: str) -> str:
    return ", ".join(other for other in names if other != name)


class _Written:
    """Pictures of the set that was just written, by their number over all splits."""

    def __init__(self, root: Path, splits: Sequence[SplitParts]) -> None:
        self._folders = [root / split.split for split in splits]
        self._indices = [read_index(folder) for folder in self._folders]
        self._firsts = np.cumsum([0, *(len(index.rows) for index in self._indices)])

    def _place(self, number: int) -> tuple[int, int]:
        split = int(np.searchsorted(self._firsts, number, side="right")) - 1
        return split, number - int(self._firsts[split])

    def read(self, number: int) -> bytes:
        split, place = self._place(number)
        row = self._indices[split].rows[place]
        with contextlib.closing(Shards(self._folders[split], self._indices[split].shards)) as shards:
            return shards.read(int(row["shard"]), int(row["offset"]), int(row["size"]))

    def names(self, numbers: Sequence[int]) -> list[str]:
        places = [self._place(number) for number in numbers]
        return [f"{self._folders[split].name}/{self._indices[split].names[place]}" for split, place in places]


PICTURES_A_WORKER = 1000


@dataclass(frozen=True)
class ConvertOutcome:
    """`pictures` counts all of a split, written or skipped; `troubles` names the bad and the odd."""

    pictures: dict[str, int]
    written: dict[str, int]
    files: dict[str, int]
    bytes: int = 0
    troubles: tuple[PictureDefect, ...] = ()
    already: bool = False

    @property
    def skipped(self) -> int:
        return sum(self.pictures.values()) - sum(self.written.values())


def convert(request: ConvertRequest, progress: Progress = no_progress) -> ConvertOutcome:
    """Progress counts pictures."""
    formats.named(request.to)  # refuses one that there is not
    source = open_source(request.source)
    _refuse_nesting(request)
    journal = Journal(request.target)
    if not journal.open(request.plan()):
        return _already(request.target)
    listed = {
        split: write_listing(
            source, split, journal.folder / split, request.seed if split == "train" else None
        )
        for split in source.folders
    }
    listing_troubles = [trouble for summary in listed.values() for trouble in summary.troubles]
    size = sum(summary.bytes for summary in listed.values())
    _refuse_bad_places(request, listing_troubles)
    _refuse_full_disk(request, size)
    shards = request.target_shards(source, listed, journal.folder)
    parts, assembly = _written(request, shards, progress)
    twice = mislabelled(request.target, parts, tolerated=MISLABELLED in request.keep)
    if twice and MISLABELLED not in request.keep:
        parts, assembly = _written(request, _without(request, shards, twice), progress)
        twice = []
    troubles = [
        *listing_troubles,
        *(trouble for split in parts for part in split.parts for trouble in part.troubles()),
    ]
    troubles += twice
    written = {split.split: split.count for split in parts}
    if not sum(written.values()):
        raise UserError(f"{request.source} has no picture that could be written.")
    pictures = {split: summary.count + _strays(summary.troubles) for split, summary in listed.items()}
    about = {**request.plan(), "found": pictures, "troubles": [str(trouble) for trouble in troubles]}
    assembly.finish(ImageDataset(request.to, source.classes, written, about), parts)
    journal.close()
    files = {split.split: len(split.parts) for split in parts}
    return ConvertOutcome(pictures, written, files, size, tuple(troubles))


def _written(
    request: ConvertRequest, shards: Sequence[TargetShard], progress: Progress
) -> tuple[list[SplitParts], Assembly]:
    jobs = [Job(convert_shard, (shard,), shard.records) for shard in shards]
    # No more than have something to do: to start one takes as long as some hundred pictures.
    workers = min(request.workers, sum(job.size for job in jobs) // PICTURES_A_WORKER)
    for _ in results(jobs, workers, progress):
        pass
    assembly = Assembly(request.target, formats.named(request.to))
    parts = []
    for split, mine in groupby(shards, key=lambda shard: shard.split):
        in_split = list(mine)
        names = [shard.name for shard in in_split if shard.name]
        parts.append(SplitParts(split, [shard.record for shard in in_split], names))
        assembly.split(parts[-1])
    return parts, assembly


def _without(
    request: ConvertRequest, shards: Sequence[TargetShard], bad: Sequence[PictureDefect]
) -> list[TargetShard]:
    """Shards that have one of these leave it out when they are written again; the others stay done."""
    if request.on_bad == "stop":
        raise UserError(f"{bad[0]}; remove all but one of them, or give --on-bad skip or --keep mislabelled.")
    names = {trouble.name for trouble in bad}
    again = []
    for shard in shards:
        mine = {f"{shard.split}/{name}" for name in shard.record.names()}
        again.append(replace(shard, left_out=frozenset(names & mine)))
    return again


def _strays(troubles: Sequence[PictureDefect]) -> int:
    """Of what the listing told, those that are files rather than folders."""
    return sum({EMPTY_CLASS, UNREADABLE_FOLDER}.isdisjoint(trouble.codes) for trouble in troubles)


def _already(target: Path) -> ConvertOutcome:
    dataset = read_dataset(target)
    pictures = {str(split): int(count) for split, count in dict(dataset.about.get("found", {})).items()}
    return ConvertOutcome(pictures or dict(dataset.splits), dict(dataset.splits), {}, already=True)


def _refuse_nesting(request: ConvertRequest) -> None:
    source, target = request.source.resolve(), request.target.resolve()
    if source == target or source in target.parents or target in source.parents:
        raise UserError(
            f"{request.target} and {request.source} lie in each other; choose a folder elsewhere."
        )


def _refuse_bad_places(request: ConvertRequest, troubles: Sequence[PictureDefect]) -> None:
    bad = [trouble for trouble in troubles if not trouble.tolerated]
    if bad and request.on_bad == "stop":
        raise UserError(f"{bad[0]}; mend or remove it, or give --on-bad skip ({len(bad)} in all).")


def _refuse_full_disk(request: ConvertRequest, size: int) -> None:
    """Links take no room, and what a conversion that was stopped has written is there already."""
    free = shutil.disk_usage(request.target).free
    done = sum(file.stat().st_size for file in request.target.glob("*/*") if file.is_file())
    if not isinstance(formats.named(request.to), Loose) and size > free + done:
        raise UserError(
            f"{request.target} has room for {free / 1e9:.1f} GB, and the pictures are {size / 1e9:.1f} GB; "
            "choose another disk."
        )
