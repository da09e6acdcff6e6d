"""A token set against its checksums and the rules of its format; a stranger's gets its meta.json."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from trainmark.base.errors import UserError
from trainmark.data import checksums
from trainmark.data.defects import DIFFERS, EXTRA, MISSING, STRUCTURE, UNREADABLE_FILE, SetFinding
from trainmark.data.index import CHECKSUMS
from trainmark.data.tokens import arrow, bert_records
from trainmark.data.tokens.source import PIECE, ROWS, SPLITS, token_format
from trainmark.data.tokens.target import write_meta
from trainmark.data.verify import Progress
from trainmark.data.workers import in_parallel
from trainmark.workloads.tokens import dataset
from trainmark.workloads.tokens.formats import mlm
from trainmark.workloads.tokens.formats.mapped import UnfitTokens

FORMATS = (*dataset.READERS, arrow.NAME, bert_records.NAME)
BYTES_OF_WORKER = 1 << 26  # fewer are read before another process has started
Array = npt.NDArray[Any]


@dataclass(frozen=True)
class TokenVerdict:
    """What was looked at and what is wrong; `unit` is tokens or sequences, `largest` the largest id."""

    format: str
    by: str
    files: int
    splits: dict[str, int]
    unit: str
    largest: int
    findings: tuple[SetFinding, ...]

    @property
    def sound(self) -> bool:
        return not self.findings


@dataclass(frozen=True)
class TokenFileJob:
    """One file; `format` is None where only its checksum is compared, `checksum` where it has none."""

    root: Path
    file: str
    format: str | None
    split: str
    vocabulary: int | None
    checksum: str | None


@dataclass(frozen=True)
class TokenFileReport:
    count: int
    largest: int
    findings: tuple[SetFinding, ...]


def verify_tokens(root: Path, workers: int, progress: Progress = lambda done, total: None) -> TokenVerdict:
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
    listed = _listed(root, findings)
    tasks = _tasks(root, form, about.get("vocabulary"), listed, findings)
    splits: dict[str, int] = {}
    largest = -1
    size = sum((root / task.file).stat().st_size for task in tasks)
    parallel = in_parallel(verify_file, tasks, max(1, min(workers, len(tasks), size // BYTES_OF_WORKER)))
    for number, (task, answer) in enumerate(parallel, 1):
        findings += answer.findings
        largest = max(largest, answer.largest)
        if task.format:
            splits[task.split] = splits.get(task.split, 0) + answer.count
        progress(number, len(tasks))
    findings += _miscounted(about.get("splits", {}), splits, findings)
    unit = "sequences" if form in (mlm.NAME, bert_records.NAME) else "tokens"
    by = "checksums and the rules of" if listed else "the rules of"
    ordered = {split: splits[split] for split in SPLITS if split in splits}
    return TokenVerdict(form, f"{by} {form}", len(tasks), ordered, unit, largest, tuple(sorted(findings)))


def _listed(root: Path, findings: list[SetFinding]) -> dict[str, str]:
    listed: dict[str, str] = {}
    if not (root / CHECKSUMS).exists():
        if (root / dataset.META).exists() and dataset.describe(str(root)):
            findings.append(SetFinding(CHECKSUMS, MISSING, "is missing; nothing can be compared"))
        return listed
    for number, checksum, path in checksums.read(root):
        if not checksum or path in listed:
            findings.append(SetFinding(CHECKSUMS, DIFFERS, f"line {number} is no checksum of another file"))
        else:
            listed[path] = checksum
    return listed


def _tasks(
    root: Path, form: str, vocabulary: int | None, listed: dict[str, str], findings: list[SetFinding]
) -> list[TokenFileJob]:
    data = {path.relative_to(root).as_posix(): split for split, path in _data_files(root, form)}
    names = sorted({*data, *listed})
    there = {path.relative_to(root).as_posix() for path in root.rglob("*") if not path.is_dir()}
    if listed:
        findings += [
            SetFinding(name, EXTRA, f"is not listed in {CHECKSUMS}")
            for name in sorted(there - {*listed, CHECKSUMS})
        ]
    findings += [SetFinding(name, MISSING, "is missing") for name in names if name not in there]
    return [
        TokenFileJob(
            root, name, form if name in data else None, data.get(name, ""), vocabulary, listed.get(name)
        )
        for name in names
        if name in there
    ]


def _data_files(root: Path, form: str) -> list[tuple[str, Path]]:
    if form == arrow.NAME:
        return [(split, path) for split, files in arrow.splits(root).items() for path in files]
    if form == bert_records.NAME:
        return [(split, path) for split in SPLITS for path in bert_records.files_of(root, split)]
    return [(split, Path(path)) for split in SPLITS for path in dataset.files_of(str(root), form, split)]


def verify_file(task: TokenFileJob) -> TokenFileReport:
    """Carried out by a worker."""
    path = task.root / task.file
    findings: list[SetFinding] = []
    try:
        if task.checksum and checksums.of_file(path) != task.checksum:
            findings.append(SetFinding(task.file, DIFFERS, "differs from its checksum"))
        count, largest = _content(task, path, findings) if task.format else (0, -1)
    except (UnfitTokens, UserError) as error:
        findings.append(SetFinding(task.file, STRUCTURE, _without(path, error)))
        count, largest = 0, -1
    except OSError as error:
        findings.append(SetFinding(task.file, UNREADABLE_FILE, f"cannot be read: {error.strerror}"))
        count, largest = 0, -1
    return TokenFileReport(count, largest, tuple(findings))


def _content(task: TokenFileJob, path: Path, findings: list[SetFinding]) -> tuple[int, int]:
    """Return how many tokens or records there are, and the largest id; note what is wrong with them."""
    count, largest = 0, -1
    for piece in _pieces(str(task.format), path):
        if piece.dtype.names:
            findings += _odd_records(task, piece, count)
            ids = np.concatenate([piece["tokens"].reshape(-1), piece["labels"].reshape(-1)])
        else:
            ids = piece
            if ids.size and int(ids.min()) < 0:
                findings.append(SetFinding(task.file, STRUCTURE, f"has the id {int(ids.min())}"))
        count += len(piece)
        largest = max(largest, int(ids.max()) if ids.size else -1)
    if task.vocabulary is not None and largest >= task.vocabulary:
        sentence = f"has the id {largest}, and the vocabulary has {task.vocabulary}"
        findings.append(SetFinding(task.file, STRUCTURE, sentence))
    return count, largest


def _pieces(form: str, path: Path) -> Any:
    if form == arrow.NAME:
        yield from arrow.read([path])
    elif form == bert_records.NAME:
        yield from bert_records.read([path], ROWS)
    else:
        opened = dataset.READERS[form].open_file(str(path))
        step = ROWS if opened.dtype.names else PIECE
        for at in range(0, len(opened), step):
            yield opened[at : at + step]


def _odd_records(task: TokenFileJob, rows: Array, first: int) -> list[SetFinding]:
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
        SetFinding(task.file, STRUCTURE, f"has {what} in record {first + int(np.flatnonzero(bad)[0])}")
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
