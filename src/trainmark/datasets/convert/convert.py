"""From one format into another: listed, cut into shards, written in parallel, put together."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from trainmark.base.errors import UserError
from trainmark.datasets import formats
from trainmark.datasets.assemble import Assembly, SplitParts
from trainmark.datasets.convert import listing, progress
from trainmark.datasets.convert.mislabelled import mislabelled
from trainmark.datasets.convert.request import Request
from trainmark.datasets.convert.shard import Task, convert_shard
from trainmark.datasets.index import Dataset, read_dataset
from trainmark.datasets.journal import Journal
from trainmark.datasets.records.format import Loose
from trainmark.datasets.source import open_source
from trainmark.datasets.trouble import EMPTY_CLASS, FOLDER, MISLABELLED, Trouble
from trainmark.datasets.workers import in_parallel

PICTURES_A_WORKER = 1000


@dataclass(frozen=True)
class Outcome:
    """`pictures` counts all of a split, written or skipped; `troubles` names the bad and the odd."""

    pictures: dict[str, int]
    written: dict[str, int]
    files: dict[str, int]
    bytes: int = 0
    troubles: tuple[Trouble, ...] = ()
    already: bool = False

    @property
    def skipped(self) -> int:
        return sum(self.pictures.values()) - sum(self.written.values())


def convert(request: Request, begun: Callable[[Path, int], None] = lambda journal, size: None) -> Outcome:
    """`begun` is told the journal, where the progress can be read, and how many pictures there are."""
    formats.named(request.to)  # refuses one that there is not
    source = open_source(request.source)
    _refuse_nesting(request)
    journal = Journal(request.target)
    if not journal.open(request.plan()):
        return _already(request.target)
    listed = {
        split: listing.write(
            source, split, journal.folder / split, request.seed if split == "train" else None
        )
        for split in source.folders
    }
    listing_troubles = [trouble for summary in listed.values() for trouble in summary.troubles]
    size = sum(summary.bytes for summary in listed.values())
    _refuse_bad_places(request, listing_troubles)
    _refuse_full_disk(request, size)
    tasks = request.tasks(source, listed, journal.folder)
    progress.prepare(journal.folder, len(tasks))
    begun(journal.folder, sum(summary.count for summary in listed.values()))
    parts, assembly = _written(request, tasks)
    twice = mislabelled(request.target, parts, tolerated=MISLABELLED in request.keep)
    if twice and MISLABELLED not in request.keep:
        parts, assembly = _written(request, _without(request, tasks, twice))
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
    assembly.finish(Dataset(request.to, source.classes, written, about), parts)
    journal.close()
    files = {split.split: len(split.parts) for split in parts}
    return Outcome(pictures, written, files, size, tuple(troubles))


def _written(request: Request, tasks: Sequence[Task]) -> tuple[list[SplitParts], Assembly]:
    for _ in in_parallel(convert_shard, tasks, _workers(request, tasks)):
        pass
    splits = dict.fromkeys(task.split for task in tasks)
    parts = [_parts(split, [task for task in tasks if task.split == split]) for split in splits]
    assembly = Assembly(request.target, formats.named(request.to))
    for split in parts:
        assembly.split(split)
    return parts, assembly


def _parts(split: str, tasks: Sequence[Task]) -> SplitParts:
    names = [name for task in tasks if (name := task.shard_name()) is not None]
    return SplitParts(split, [task.shard_record for task in tasks], names)


def _workers(request: Request, tasks: Sequence[Task]) -> int:
    """No more than have something to do: to start one takes as long as some hundred pictures."""
    pictures = sum(task.last - task.first for task in tasks)
    return max(1, min(request.workers, len(tasks), pictures // PICTURES_A_WORKER))


def _without(request: Request, tasks: Sequence[Task], bad: Sequence[Trouble]) -> list[Task]:
    """The tasks that wrote one of these leave it out when they are done again; the others stay done."""
    if request.on_bad == "stop":
        raise UserError(f"{bad[0]}; remove all but one of them, or give --on-bad skip or --keep mislabelled.")
    names = {trouble.name for trouble in bad}
    again = []
    for task in tasks:
        with task.shard_record.path("names").open(encoding="utf-8", errors="surrogateescape") as lines:
            mine = names & {f"{task.split}/{name}" for name in lines.read().split("\n")}
        again.append(replace(task, left_out=frozenset(mine)))
    return again


def _strays(troubles: Sequence[Trouble]) -> int:
    """Of what the listing told, those that are files rather than folders."""
    return sum({EMPTY_CLASS, FOLDER}.isdisjoint(trouble.codes) for trouble in troubles)


def _already(target: Path) -> Outcome:
    dataset = read_dataset(target)
    pictures = {str(split): int(count) for split, count in dict(dataset.about.get("found", {})).items()}
    return Outcome(pictures or dict(dataset.splits), dict(dataset.splits), {}, already=True)


def _refuse_nesting(request: Request) -> None:
    source, target = request.source.resolve(), request.target.resolve()
    if source == target or source in target.parents or target in source.parents:
        raise UserError(
            f"{request.target} and {request.source} lie in each other; choose a folder elsewhere."
        )


def _refuse_bad_places(request: Request, troubles: Sequence[Trouble]) -> None:
    bad = [trouble for trouble in troubles if not trouble.tolerated]
    if bad and request.on_bad == "stop":
        raise UserError(f"{bad[0]}; mend or remove it, or give --on-bad skip ({len(bad)} in all).")


def _refuse_full_disk(request: Request, size: int) -> None:
    """Links take no room, and what a conversion that was stopped has written is there already."""
    free = shutil.disk_usage(request.target).free
    done = sum(file.stat().st_size for file in request.target.glob("*/*") if file.is_file())
    if not isinstance(formats.named(request.to), Loose) and size > free + done:
        raise UserError(
            f"{request.target} has room for {free / 1e9:.1f} GB, and the pictures are {size / 1e9:.1f} GB; "
            "choose another disk."
        )
