"""Makes a stand-in for ImageNet: pictures in chunks, by several processes, then its index and checksums."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from trainmark.data.journal import Chunk, Journal, finish_folder_set, is_chunk_intact, write_image
from trainmark.data.scene import PicturePlan, draw_picture
from trainmark.data.workers import in_parallel

# What the pictures look like; counted up when that changes.
RECIPE = 1
# A set is cut into about this many chunks, within these bounds: they are what a stopped command has to redo.
CHUNKS, SMALLEST, LARGEST = 64, 8, 256


@dataclass(frozen=True)
class MakeJob:
    root: Path
    plan: PicturePlan
    split: str
    first: int
    count: int

    @property
    def chunk(self) -> str:
        return f"{self.split}-{self.first:09}"


@dataclass(frozen=True)
class MadeSet:
    """`drawn`: by this call; the others were there."""

    pictures: int
    drawn: int
    bytes: int


def make_set(
    plan: PicturePlan, root: Path, workers: int, progress: Callable[[int, int], None], about: dict[str, Any]
) -> MadeSet:
    """Begins a set or goes on with it; the same bytes whatever the number of workers.

    `about`: what else decides over the bytes, such as the version of the encoder.
    """
    total = sum(plan.splits.values())
    journal = Journal(root)
    origin = {"made_by": "trainmark data make", "recipe": RECIPE, **plan.about(), **about}
    if not journal.open(origin):
        progress(total, total)
        return MadeSet(total, 0, _bytes_of(root, plan))
    tasks = list(_tasks(root, plan))
    todo = [task for task in tasks if not is_chunk_intact(journal, task.chunk, root / task.split)]
    drawn = sum(task.count for task in todo)
    done = total - drawn
    progress(done, total)
    for task, chunk in in_parallel(draw_chunk, todo, workers):
        journal.keep(task.chunk, chunk)
        done += task.count
        progress(done, total)
    chunks = {split: [task.chunk for task in tasks if task.split == split] for split in plan.splits}
    size = finish_folder_set(journal, plan.class_names, chunks, origin)
    return MadeSet(total, drawn, size)


def draw_chunk(task: MakeJob) -> Chunk:
    """Carried out by a worker: draws and writes the pictures of one chunk."""
    entries = []
    for label, number in _records(task):
        name = task.plan.class_names[label]
        file = f"{name}/{name}_{task.split}_{number:06}.JPEG"
        entries.append(
            write_image(task.root / task.split, file, draw_picture(task.plan, task.split, label, number))
        )
    return Chunk(tuple(entries))


def _tasks(root: Path, plan: PicturePlan) -> Iterator[MakeJob]:
    for split, count in plan.splits.items():
        size = min(LARGEST, max(SMALLEST, count // CHUNKS))
        for first in range(0, count, size):
            yield MakeJob(root, plan, split, first, min(size, count - first))


def _records(task: MakeJob) -> Iterator[tuple[int, int]]:
    """Label and number within the class of each picture of the chunk; records are in the order of classes."""
    begin = 0
    for label, count in enumerate(task.plan.of_class(task.split)):
        low, high = max(task.first, begin), min(task.first + task.count, begin + count)
        yield from ((label, record - begin) for record in range(low, high))
        begin += count


def _bytes_of(root: Path, plan: PicturePlan) -> int:
    from trainmark.data.index import read_index

    return sum(int(read_index(root / split).rows["size"].sum(dtype="u8")) for split in plan.splits)
