"""Sets made here: a stand-in for ImageNet, drawn by several processes, and a corpus of known entropy."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy.typing as npt

from trainmark.base.errors import UserError, nearest
from trainmark.data.files import read_index
from trainmark.data.jobs import Job, Progress
from trainmark.data.journal import Journal, ShardRecord, ShardRecorder, finish_folder_set, write_picture
from trainmark.data.scene import PicturePlan, draw_picture
from trainmark.data.tokens import arrow
from trainmark.data.tokens.target import WRITERS, TokenTarget, check_shards, default_shards, write_split
from trainmark.workloads.tokens.markov import Markov, check

MADE_BY = "trainmark data make"
# What the pictures look like; counted up when that changes.
RECIPE = 1
# A set is cut into about this many chunks, within these bounds: they are what a stopped command has to redo.
CHUNKS, SMALLEST, LARGEST = 64, 8, 256


@dataclass(frozen=True)
class MadeSet:
    """`drawn`: by this call; the others were there."""

    pictures: int
    drawn: int
    bytes: int


def make_set(
    plan: PicturePlan, root: Path, workers: int, progress: Progress, about: dict[str, Any]
) -> MadeSet:
    """Begins a set or goes on with it; the same bytes whatever the number of workers.

    `about`: what else decides over the bytes, such as the version of the encoder.
    """
    total = sum(plan.splits.values())
    journal = Journal(root)
    origin = {"made_by": MADE_BY, "recipe": RECIPE, **asdict(plan), **about}
    if not journal.open(origin):
        progress(total, total)
        sizes = (read_index(root / split).rows["size"] for split in plan.splits)
        return MadeSet(total, 0, sum(int(size.sum(dtype="u8")) for size in sizes))
    chunks = {split: list(_chunks(journal, plan, split)) for split in plan.splits}
    drawn = journal.carry_out([job for jobs in chunks.values() for job in jobs], workers, progress)
    keys = {split: [job.key for job in jobs] for split, jobs in chunks.items()}
    size = finish_folder_set(journal, plan.class_names, keys, origin)
    return MadeSet(total, sum(job.size for job in drawn), size)


def _chunks(journal: Journal, plan: PicturePlan, split: str) -> Iterator[Job[None]]:
    total = plan.splits[split]
    size = min(LARGEST, max(SMALLEST, total // CHUNKS))
    for first in range(0, total, size):
        count = min(size, total - first)
        key = f"{split}-{first:09}"
        yield Job(draw_chunk, (journal.root, plan, split, first, count, journal.record(key)), count, key)


def draw_chunk(
    root: Path, plan: PicturePlan, split: str, first: int, count: int, record: ShardRecord
) -> None:
    """Carried out by a worker: draws and writes these pictures, which are in the order of classes."""
    begin = 0
    with ShardRecorder(record) as recorder:
        for label, of_class in enumerate(plan.of_class(split)):
            name = plan.class_names[label]
            for number in range(max(first, begin) - begin, min(first + count, begin + of_class) - begin):
                file = f"{name}/{name}_{split}_{number:06}.JPEG"
                content = draw_picture(plan, split, label, number)
                write_picture(root / split / file, content)
                recorder.add_picture(file, label, content, f"{split}/{file}")
            begin += of_class
        recorder.done()


# What the source of tokens draws; counted up when that changes.
CORPUS_RECIPE = 1
PIECE = 1 << 21  # tokens


@dataclass(frozen=True)
class CorpusPlan:
    """What decides over the bytes of a corpus."""

    tokens: int
    validation: int
    vocabulary: int
    order: int
    classes: int
    seed: int
    format: str

    def check(self) -> None:
        if self.format not in WRITERS:
            raise UserError(f"there is no format '{self.format}' of corpora{nearest(self.format, WRITERS)}")
        if self.format == "nanogpt" and self.vocabulary > 1 << 16:
            raise UserError("nanoGPT's ids are below 65,536; use another --format or a smaller --vocabulary.")
        try:
            check(self.vocabulary, self.order, self.classes)
        except ValueError as error:
            raise UserError(str(error)) from error


@dataclass(frozen=True)
class Corpus:
    """What there is now; `drawn` is False where it was there already. Entropies in nats a token."""

    drawn: bool
    splits: dict[str, int]
    entropy: float
    plateaus: tuple[float, ...]
    bytes: int


def make_corpus(plan: CorpusPlan, root: Path, progress: Progress) -> Corpus:
    """Make a corpus with its training and validation part; the same plan gives the same bytes."""
    plan.check()
    source = Markov(plan.vocabulary, plan.order, plan.classes, plan.seed)
    plateaus = tuple(source.plateaus())
    splits = {"train": plan.tokens, "val": plan.validation}
    splits = {split: count for split, count in splits.items() if count}
    shards = {split: default_shards(plan.format, count) for split, count in splits.items()}
    for split, count in splits.items():
        check_shards(plan.format, shards[split], {split: count})
    if plan.format == arrow.NAME:
        arrow.import_pyarrow()
    target = TokenTarget(root, {"made_by": MADE_BY, "recipe": CORPUS_RECIPE, **asdict(plan)})
    if not target.begin():
        size = sum(path.stat().st_size for path in root.rglob("*") if path.is_file())
        return Corpus(False, splits, plateaus[-1], plateaus, size)
    total, done = sum(splits.values()), 0

    def wrote(count: int) -> None:
        nonlocal done
        done += count
        progress(done, total)

    for split, count in splits.items():
        pieces = _pieces(source, split, count)
        write_split(root, plan.format, split, count, pieces, plan.vocabulary, shards[split], wrote)
    if plan.format == arrow.NAME:
        arrow.finish(root, shards)
    size = target.finish(
        {
            "format": plan.format,
            "vocabulary": plan.vocabulary,
            "splits": splits,
            "source": {"kind": "markov", "order": plan.order, "classes": plan.classes, "seed": plan.seed},
            "entropy": plateaus[-1],
            "plateaus": list(plateaus),
        }
    )
    return Corpus(True, splits, plateaus[-1], plateaus, size)


def _pieces(source: Any, split: str, count: int) -> Iterator[npt.NDArray[Any]]:
    state = None
    for at in range(0, count, PIECE):
        ids, state = source.draw(split, at, min(PIECE, count - at), state)
        yield ids
