"""The watch over a started trial: ends it when a rank dies, falls silent, takes too long or lingers."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from trainmark.launch.job import Job, JobSession
from trainmark.launch.outcome import LOST_PEER, EndCause, JobEnd, tail
from trainmark.machine.process_tree import descendants

# Each rank whose steps are watched has a stream, and leaves a mark when told to end: hooks/stopping.py.
STREAMS, TOLD = "observed-*-rank*.jsonl", "told-to-end-rank*"
LINGERING_LOOK_SECONDS = 1.0
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
        self._look_due = now + LINGERING_LOOK_SECONDS
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


TICK_SECONDS = 0.2
# Once one rank has failed, the others get this long to print why before they are ended.
LAST_WORDS_SECONDS = 2.0
# And this long where the one has only lost a peer: connections close before their node is known to be gone.
LOST_PEER_SECONDS = 10.0
STACKS_SECONDS = 1.0
# How often it is looked whether a rank has written something: so often in the silence that is allowed, and at
# least at this interval.
LOOKS_IN_SILENCE = 20
LOOK_SECONDS = 5.0
# The probe holds events back for up to 0.25 s, so two ranks that stop together seem this far apart.
TOGETHER_SECONDS = 0.5


@dataclass(frozen=True)
class TrialLimits:
    """Seconds: a whole trial; a rank without a new line or event."""

    trial: float = 1800.0
    silence: float = 300.0


def watch(
    session: JobSession,
    job: Job,
    limits: TrialLimits,
    stop_asked: Callable[[], bool],
    tick: Callable[[], None],
) -> JobEnd:
    """Returns once no process of the job is left; `tick` is called several times a second."""
    began = time.monotonic()
    kills = 0
    exits: dict[int, int | None] = dict.fromkeys(range(job.world_size))
    running = set(exits)
    signs = SignsOfLife(job)
    lingering = Lingering(job, session.root_pid)
    failed_at: float | None = None
    culprit: int | None = None

    def ending(cause: EndCause, blamed: int | None = None) -> JobEnd:
        none_began = not any(_size(job.events(rank)) for rank in exits)
        nodes = {rank: node for rank in exits if (node := session.node_of(rank)) is not None}
        loss = session.lost() if cause in (EndCause.NODE_LOST, EndCause.AGENT_LOST) else None
        seconds = time.monotonic() - began
        return JobEnd(cause, dict(exits), blamed, seconds, kills, none_began, nodes, loss)

    try:
        while True:
            for gone in session.exits(TICK_SECONDS):
                exits[gone.rank] = gone.code
                running.discard(gone.rank)
                kills = max(kills, gone.oom_kills)
                if gone.code != 0 and culprit is None:
                    culprit, failed_at = gone.rank, time.monotonic()
            tick()
            now = time.monotonic()
            if not running and session.lost() is None and not (culprit is not None and session.doubtful()):
                return ending(EndCause.FINISHED if culprit is None else EndCause.RANK_FAILED, culprit)
            if (loss := session.lost()) is not None:
                return ending(EndCause.AGENT_LOST if loss.node is None else EndCause.NODE_LOST)
            # A rank that fails because another's node has just gone is not to blame for it.
            if culprit is not None and failed_at is not None and not session.doubtful():
                patient = now - failed_at <= LOST_PEER_SECONDS and _lost_elsewhere(session, job, culprit)
                if now - failed_at > LAST_WORDS_SECONDS and not patient:
                    return ending(EndCause.RANK_FAILED, culprit)
            if stop_asked():
                return ending(EndCause.STOPPED)
            if culprit is None and lingering.is_over(now):
                return ending(EndCause.LINGERED)
            if now - began > limits.trial:
                return ending(EndCause.TIME_UP)
            if signs.any_silent(running, now, limits.silence):
                blamed = signs.slowest(sorted(running))
                session.show_stacks()
                time.sleep(STACKS_SECONDS)
                return ending(EndCause.SILENT, blamed)
    finally:
        session.stop()


def _lost_elsewhere(session: JobSession, job: Job, rank: int) -> bool:
    """It fell because it lost a peer, which may have been on a node of its own."""
    several = session.node_of(0) != session.node_of(job.world_size - 1)
    return several and bool(LOST_PEER.search(tail(job.log(rank))))


class SignsOfLife:
    """When each rank last wrote an event, printed something, or took a step for its profile."""

    def __init__(self, job: Job) -> None:
        self._job = job
        now = time.monotonic()
        self._sizes = dict.fromkeys(range(job.world_size), 0)
        self._heard = dict.fromkeys(range(job.world_size), now)
        self._look_due = 0.0

    def any_silent(self, running: Iterable[int], now: float, allowed: float) -> bool:
        """Looks at the files as often as `allowed` wants it: of thousands of ranks that is not free."""
        if now < self._look_due:
            return False
        self._look_due = now + min(LOOK_SECONDS, allowed / LOOKS_IN_SILENCE)
        job = self._job
        is_profiled = job.profile_progress(0).parent.is_dir()
        for rank in running:
            size = _size(job.events(rank)) + _size(job.log(rank))
            if is_profiled:
                size += _size(job.profile_progress(rank))
            if size != self._sizes[rank]:
                self._sizes[rank], self._heard[rank] = size, now
        return any(now - self._heard[rank] > allowed for rank in running)

    def slowest(self, running: Sequence[int]) -> int | None:
        """The rank whose events end clearly before those of all others; None where that cannot be told."""
        last = {rank: _modified(self._job.events(rank)) for rank in running}
        first, *others = sorted(running, key=last.__getitem__)
        return first if all(last[other] - last[first] > TOGETHER_SECONDS for other in others) else None


def _modified(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0
