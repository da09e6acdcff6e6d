"""Every picture of a set decoded: what checksums cannot tell, namely that it was bad from the beginning."""

from __future__ import annotations

import io
import warnings
from dataclasses import dataclass
from pathlib import Path

from trainmark.base.errors import UserError
from trainmark.datasets.index import Dataset, read_index
from trainmark.datasets.reading import Shards
from trainmark.datasets.verify.finding import PICTURE, Finding
from trainmark.datasets.workers import in_parallel

RECORDS = 2000


@dataclass(frozen=True)
class Task:
    folder: Path
    first: int
    last: int


def decode_all(root: Path, dataset: Dataset, workers: int) -> list[Finding]:
    try:
        import PIL  # noqa: F401
    except ImportError as error:
        raise UserError("--decode needs Pillow; pip install pillow.") from error
    tasks = [
        Task(root / split, first, min(first + RECORDS, count))
        for split, count in dataset.splits.items()
        for first in range(0, count, RECORDS)
    ]
    results = in_parallel(decode_some, tasks, max(1, min(workers, len(tasks))))
    return [finding for _, findings in results for finding in findings]


def decode_some(task: Task) -> list[Finding]:
    from PIL import Image

    try:
        index = read_index(task.folder)
    except UserError as error:
        return [Finding(task.folder.name, PICTURE, str(error))]
    shards = Shards(task.folder, index.shards)
    findings = []
    for row, name in zip(
        index.rows[task.first : task.last], index.names[task.first : task.last], strict=True
    ):
        try:
            content = shards.read(int(row["shard"]), int(row["offset"]), int(row["size"]))
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of large pictures and odd metadata
                with Image.open(io.BytesIO(content)) as picture:
                    picture.load()
        except (OSError, ValueError, SyntaxError, Image.DecompressionBombError) as error:
            what = f"cannot be decoded ({' '.join(str(error).split())[:80]})"
            findings.append(Finding(f"{task.folder.name}/{name}", PICTURE, what))
    shards.close()
    return findings
