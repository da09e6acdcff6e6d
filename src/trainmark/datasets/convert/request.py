"""What to convert, and how: cut into tasks of one shard each."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from trainmark.datasets import formats
from trainmark.datasets.convert.listing import Summary
from trainmark.datasets.convert.shard import Task
from trainmark.datasets.records.format import Sharded
from trainmark.datasets.source import ImageSource
from trainmark.datasets.trouble import TOLERATED

SEED = 0
#: Pictures that are files of their own are linked or copied so many at a time.
LOOSE_TASK = 1000


@dataclass(frozen=True)
class Request:
    """`seed` None keeps the order of the source; only `train` is ever shuffled."""

    source: Path
    target: Path
    to: str
    seed: int | None = SEED
    shards: int | None = None
    records_per_shard: int | None = None
    on_bad: str = "stop"
    keep: frozenset[str] = TOLERATED
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

    def tasks(self, source: ImageSource, listed: dict[str, Summary], journal: Path) -> list[Task]:
        tasks: list[Task] = []
        for split, summary in listed.items():
            bounds = self.bounds(split, summary.count)
            for number, first in enumerate(bounds[:-1]):
                tasks.append(
                    Task(
                        source=source,
                        split=split,
                        to=self.to,
                        target=self.target,
                        journal=journal,
                        number=number,
                        total=len(bounds) - 1,
                        first=first,
                        last=bounds[number + 1],
                        largest=summary.largest,
                        keep=self.keep,
                        on_bad=self.on_bad,
                        slot=len(tasks),
                    )
                )
        return tasks
