"""Makes a corpus of known entropy from the Markov source."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy.typing as npt

from trainmark.base.errors import UserError, nearest
from trainmark.data.tokens import arrow
from trainmark.data.tokens.target import WRITERS, TokenTarget, check_shards, default_shards, write_split
from trainmark.workloads.tokens.markov import Markov, check

# What the source draws; counted up when that changes.
RECIPE = 1
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


def make_corpus(plan: CorpusPlan, root: Path, progress: Callable[[int, int], None]) -> Corpus:
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
    target = TokenTarget(root, {"made_by": "trainmark data make", "recipe": RECIPE, **asdict(plan)})
    if not target.begin():
        return Corpus(False, splits, plateaus[-1], plateaus, _bytes(root))
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


def _bytes(root: Path) -> int:
    return sum(path.stat().st_size for path in root.rglob("*") if path.is_file())
