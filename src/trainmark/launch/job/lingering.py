"""A program that was told to end after its last step and goes on: a thread or an exit handler holds it."""

from __future__ import annotations

import contextlib
from pathlib import Path

from trainmark.launch.job.job import Job
from trainmark.machine.process_tree import descendants

# Each rank whose steps are watched has a stream, and leaves a mark when told to end: hooks/stopping.py.
STREAMS, TOLD = "observed-*-rank*.jsonl", "told-to-end-rank*"
LOOK_SECONDS = 1.0
GRACE_SECONDS = 10.0
# Who writes this much between two looks saves a checkpoint, which is not to be cut short.
SAVING_BYTES = 1 << 20


class Lingering:
    """`root_pid` has the program among its descendants, where that is on this machine."""

    def __init__(self, job: Job, root_pid: int | None) -> None:
        self._events = job.folder / "events" if job.starts_own_ranks else None
        self._root_pid = root_pid
        self._look_due = 0.0
        self._quiet_since: float | None = None
        self._written = 0

    def is_over(self, now: float) -> bool:
        """Whether all its ranks were told to end, and the grace for what they do at their end is spent."""
        if self._events is None or now < self._look_due:
            return False
        self._look_due = now + LOOK_SECONDS
        told = _ranks(self._events, TOLD)
        if not told or not told >= _ranks(self._events, STREAMS):
            return False
        written, before = self._bytes_written(), self._written
        self._written = written
        if self._quiet_since is None or written - before >= SAVING_BYTES:
            self._quiet_since = now
        return now - self._quiet_since > GRACE_SECONDS

    def _bytes_written(self) -> int:
        written = 0
        for pid in descendants(self._root_pid) if self._root_pid is not None else ():
            with contextlib.suppress(OSError, ValueError, IndexError):
                written += int(Path(f"/proc/{pid}/io").read_text().split("wchar:")[1].split()[0])
        return written


def _ranks(events: Path, pattern: str) -> set[str]:
    return {path.stem.rpartition("rank")[2] for path in events.glob(pattern)}
