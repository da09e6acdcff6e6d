"""A token set that somebody else made gets its meta.json and checksums; no file that is there is changed."""

from __future__ import annotations

from pathlib import Path

from trainmark.base.errors import UserError
from trainmark.datasets.tokens.target import write_meta
from trainmark.datasets.tokens.verify import TokenVerdict, verify_tokens
from trainmark.datasets.verify.verify import Progress
from trainmark.workloads.tokens import dataset


def index_tokens(root: Path, workers: int, progress: Progress) -> TokenVerdict:
    """Read all of it, note its counts and its vocabulary; UserError where it is not sound."""
    if (root / dataset.META).exists():
        raise UserError(f"{root} has a {dataset.META} already; `trainmark data verify {root}` checks it.")
    verdict = verify_tokens(root, workers, progress)
    if not verdict.sound:
        raise UserError(f"{root} is not sound: {verdict.findings[0]}.")
    meta = {
        "trainmark_tokens": dataset.VERSION,
        "format": verdict.format,
        "vocabulary": verdict.largest + 1,
        "splits": verdict.splits,
        "plan": {"made_by": "trainmark data index"},
    }
    write_meta(root, meta)
    return verdict
