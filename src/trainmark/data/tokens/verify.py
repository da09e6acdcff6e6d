"""A token set against its checksums and the rules of its format; a stranger's gets its meta.json."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from trainmark.base.errors import UserError
from trainmark.data.files import CHECKSUMS, checksum_of
from trainmark.data.jobs import Job, Progress, results
from trainmark.data.tokens import arrow, bert_records
from trainmark.data.tokens.source import SPLITS, files_by_split, read_pieces, token_format
from trainmark.data.tokens.target import write_meta
from trainmark.data.verify import (
    DIFFERS,
    MISSING,
    STRUCTURE,
    UNREADABLE_FILE,
    SetFinding,
    SetVerdict,
    extra_files,
    listed_checksums,
)
from trainmark.workloads.tokens import dataset
from trainmark.workloads.tokens.formats import mlm
from trainmark.workloads.tokens.formats.mapped import UnfitTokens

FORMATS = (*dataset.READERS, arrow.NAME, bert_records.NAME)
BYTES_OF_WORKER = 1 << 26  # fewer are read before another process has started
Array = npt.NDArray[Any]


def verify_tokens(root: Path, workers: int, progress: Progress) -> SetVerdict:
    findings: list[SetFinding] = []
    about: dict[str, Any] = {}
    try:
        about = dict(dataset.describe(str(root)))
    except UnfitTokens as error:
        findings.append(SetFinding(dataset.META, STRUCTURE, _without(root / dataset.META, error)))
    # What a damaged file looks like says nothing where it is written what it should be.
    form = str(about.get("format"))
    if form not in FORMATS or (root / dataset.UNFINISHED).exists():
        form = token_format(root)
    listed: dict[str, str] = {}
    if about or (root / CHECKSUMS).exists():
        listed, unlisted = listed_checksums(root)
        findings += unlisted
    if listed:
        findings += extra_files(root, listed)
    files = files_by_split(root, form)
    split_of = {path.relative_to(root).as_posix(): split for split in files for path in files[split]}
    names = sorted({*split_of, *listed})
    there = [name for name in names if (root / name).exists()]
    findings += [SetFinding(name, MISSING, "is missing") for name in names if name not in there]
    vocabulary = about.get("vocabulary")
    jobs = [
        Job(verify_file, (root, name, form if name in split_of else None, vocabulary, listed.get(name)))
        for name in there
    ]
    splits: dict[str, int] = {}
    largest = -1
    size = sum((root / name).stat().st_size for name in there)
    for job, (count, most, damage) in results(jobs, min(workers, size // BYTES_OF_WORKER), progress):
        findings += damage
        largest = max(largest, most)
        if split := split_of.get(job.arguments[1]):
            splits[split] = splits.get(split, 0) + count
    findings += _miscounted(about.get("splits", {}), splits, findings)
    unit = "sequences" if form in (mlm.NAME, bert_records.NAME) else "tokens"
    by = "checksums and the rules of" if listed else "the rules of"
    ordered = {split: splits[split] for split in SPLITS if split in splits}
    counts = len(jobs), sum(splits.values())
    return SetVerdict(f"{by} {form}", *counts, tuple(sorted(findings)), form, unit, ordered, largest)


def verify_file(
    root: Path, name: str, form: str | None, vocabulary: int | None, checksum: str | None
) -> tuple[int, int, list[SetFinding]]:
    """Return the count and the largest id of one file, and what is wrong with it.

    Without a format only its checksum is compared, where it has one.
    """
    path = root / name
    findings: list[SetFinding] = []
    count, largest = 0, -1
    try:
        if checksum and checksum_of(path) != checksum:
            findings.append(SetFinding(name, DIFFERS, "differs from its checksum"))
        if form:
            count, largest, odd = _content(path, form, vocabulary)
            findings += [SetFinding(name, STRUCTURE, what) for what in odd]
    except (UnfitTokens, UserError) as error:
        findings.append(SetFinding(name, STRUCTURE, _without(path, error)))
    except OSError as error:
        findings.append(SetFinding(name, UNREADABLE_FILE, f"cannot be read: {error.strerror}"))
    return count, largest, findings


def _content(path: Path, form: str, vocabulary: int | None) -> tuple[int, int, list[str]]:
    """Return how many tokens or records there are, the largest id, and what is wrong with them."""
    odd: list[str] = []
    count, largest = 0, -1
    for piece in read_pieces(form, [path]):
        if piece.dtype.names:
            odd += _odd_records(piece, count)
            ids = np.concatenate([piece["tokens"].reshape(-1), piece["labels"].reshape(-1)])
        else:
            ids = piece
            if ids.size and int(ids.min()) < 0:
                odd.append(f"has the id {int(ids.min())}")
        count += len(piece)
        largest = max(largest, int(ids.max()) if ids.size else -1)
    if vocabulary is not None and largest >= vocabulary:
        odd.append(f"has the id {largest}, and the vocabulary has {vocabulary}")
    return count, largest, odd


def _odd_records(rows: Array, first: int) -> list[str]:
    used = rows["labels"] >= 0
    lengths = rows["lengths"].astype(np.int64)
    wrong = {
        "a length of no valid token, or beyond the record": (lengths < 1)
        | (lengths > rows["tokens"].shape[1]),
        "a masked position beyond its length": (used & (rows["positions"] >= lengths[:, None])).any(axis=1),
        "a label below -1": (rows["labels"] < -1).any(axis=1),
        "a segment that is neither 0 nor 1": (rows["segments"] > 1).any(axis=1),
        "a next-sentence label that is neither 0 nor 1": rows["next_sentence"] > 1,
    }
    return [
        f"has {what} in record {first + int(np.flatnonzero(bad)[0])}"
        for what, bad in wrong.items()
        if bad.any()
    ]


def _miscounted(
    stated: dict[str, int], counted: dict[str, int], findings: list[SetFinding]
) -> list[SetFinding]:
    """Where a file could not be read the count says nothing new."""
    if findings:
        return []
    return [
        SetFinding(
            dataset.META, STRUCTURE, f"says {stated[split]} in {split}, and there are {counted.get(split, 0)}"
        )
        for split in stated
        if stated[split] != counted.get(split, 0)
    ]


def _without(path: Path, error: Exception) -> str:
    """Return the sentence without the name of the file, which the finding has."""
    return str(error).replace(f"{path} ", "", 1).replace(f"{path}: ", "", 1).rstrip(".")


def index_tokens(root: Path, workers: int, progress: Progress) -> SetVerdict:
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
