"""A set against its checksums; one without them against what its format says of itself."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from trainmark.base.errors import UserError
from trainmark.datasets import checksums
from trainmark.datasets.index import CHECKSUMS, DATASET, read_dataset
from trainmark.datasets.journal import FOLDER as UNFINISHED_FOLDER
from trainmark.datasets.verify.decode import decode_all
from trainmark.datasets.verify.file import Task, batches, verify_files
from trainmark.datasets.verify.finding import DIFFERS, EXTRA, MISSING, UNFINISHED, Finding
from trainmark.datasets.verify.structure import check_structure, shards_of
from trainmark.datasets.workers import in_parallel

Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class Verdict:
    """`by` says what the files were held against: their checksums, or the rules of a format."""

    by: str
    files: int
    records: int
    findings: tuple[Finding, ...]

    @property
    def sound(self) -> bool:
        return not self.findings


def verify(root: Path, workers: int, decoded: bool, progress: Progress = lambda done, total: None) -> Verdict:
    if not root.exists():
        raise UserError(f"{root} does not exist; name the folder of a set.")
    if not any((root / name).exists() for name in (DATASET, CHECKSUMS, UNFINISHED_FOLDER)):
        return _by_structure(root, workers, progress)
    listed, findings = _listed(root)
    findings += _extra(root, {path for path, _ in listed})
    splits = tuple(sorted(path.name for path in root.iterdir() if path.is_dir()))
    tasks = [Task(root, splits, files) for files in batches(root, listed)]
    done = 0
    for task, task_findings in in_parallel(verify_files, tasks, max(1, min(workers, len(tasks)))):
        findings += task_findings
        done += len(task.files)
        progress(done, len(listed))
    records = 0
    try:
        dataset = read_dataset(root)
        records = sum(dataset.splits.values())
        if decoded:
            findings += decode_all(root, dataset, workers)
    except UserError as error:
        findings.append(Finding(DATASET, UNFINISHED, str(error)))
    return Verdict("checksums", len(listed), records, tuple(sorted(findings)))


def _listed(root: Path) -> tuple[list[tuple[str, str]], list[Finding]]:
    """What checksums.txt lists, and what is wrong with the list itself."""
    listed, findings, seen = [], [], set[str]()
    try:
        for number, checksum, path in checksums.read(root):
            if not checksum:
                findings.append(Finding(CHECKSUMS, DIFFERS, f"line {number} is no checksum of a file"))
            elif path in seen:
                findings.append(Finding(CHECKSUMS, DIFFERS, f"line {number} lists {path} a second time"))
            else:
                seen.add(path)
                listed.append((path, checksum))
    except FileNotFoundError:
        findings.append(Finding(CHECKSUMS, MISSING, "is missing; nothing can be compared"))
    return listed, findings


def _extra(root: Path, listed: set[str]) -> list[Finding]:
    paths = (path.relative_to(root).as_posix() for path in root.rglob("*") if not path.is_dir())
    return [
        Finding(path, EXTRA, f"is not listed in {CHECKSUMS}")
        for path in sorted(paths)
        if path not in listed and path != CHECKSUMS
    ]


def _by_structure(root: Path, workers: int, progress: Progress) -> Verdict:
    tasks = list(shards_of(root))
    if not tasks:
        raise UserError(f"{root} holds nothing that is known as a set; see `trainmark data convert --help`.")
    findings: list[Finding] = []
    records = 0
    for number, (_, (count, task_findings)) in enumerate(
        in_parallel(check_structure, tasks, max(1, min(workers, len(tasks)))), 1
    ):
        findings += task_findings
        records += count
        progress(number, len(tasks))
    return Verdict(f"the rules of {tasks[0].format}", len(tasks), records, tuple(sorted(findings)))
