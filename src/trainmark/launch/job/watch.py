"""The watch over a started trial: ends it when a rank dies, falls silent or takes too long."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from trainmark.launch.job.job import Job, Session
from trainmark.launch.job.lingering import Lingering
from trainmark.launch.job.log_tail import tail
from trainmark.launch.job.outcome import LOST_PEER, Cause, Ending

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
class Limits:
    """Seconds: a whole trial; a rank without a new line or event."""

    trial: float = 1800.0
    silence: float = 300.0


def watch(
    session: Session, job: Job, limits: Limits, stop_asked: Callable[[], bool], tick: Callable[[], None]
) -> Ending:
    """Returns once no process of the job is left; `tick` is called several times a second."""
    began = time.monotonic()
    kills = 0
    exits: dict[int, int | None] = dict.fromkeys(range(job.world_size))
    running = set(exits)
    signs = SignsOfLife(job)
    lingering = Lingering(job, session.root_pid)
    failed_at: float | None = None
    culprit: int | None = None

    def ending(cause: Cause, blamed: int | None = None) -> Ending:
        none_began = not any(_size(job.events(rank)) for rank in exits)
        nodes = {rank: node for rank in exits if (node := session.node_of(rank)) is not None}
        loss = session.lost() if cause in (Cause.NODE_LOST, Cause.AGENT_LOST) else None
        seconds = time.monotonic() - began
        return Ending(cause, dict(exits), blamed, seconds, kills, none_began, nodes, loss)

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
                return ending(Cause.FINISHED if culprit is None else Cause.RANK_FAILED, culprit)
            if (loss := session.lost()) is not None:
                return ending(Cause.AGENT_LOST if loss.node is None else Cause.NODE_LOST)
            # A rank that fails because another's node has just gone is not to blame for it.
            if culprit is not None and failed_at is not None and not session.doubtful():
                patient = now - failed_at <= LOST_PEER_SECONDS and _lost_elsewhere(session, job, culprit)
                if now - failed_at > LAST_WORDS_SECONDS and not patient:
                    return ending(Cause.RANK_FAILED, culprit)
            if stop_asked():
                return ending(Cause.STOPPED)
            if culprit is None and lingering.is_over(now):
                return ending(Cause.LINGERED)
            if now - began > limits.trial:
                return ending(Cause.TIME_UP)
            if signs.any_silent(running, now, limits.silence):
                blamed = signs.slowest(sorted(running))
                session.show_stacks()
                time.sleep(STACKS_SECONDS)
                return ending(Cause.SILENT, blamed)
    finally:
        session.stop()


def _lost_elsewhere(session: Session, job: Job, rank: int) -> bool:
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
