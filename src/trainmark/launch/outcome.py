"""How a trial ended, decided from what its ranks left behind. Pure: no process is touched here."""

from __future__ import annotations

import re
import signal
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum


class Outcome(str, Enum):
    OK = "ok"
    OOM = "oom"
    TIMEOUT = "timeout"
    HUNG = "hung"
    CRASHED = "crashed"
    INTERRUPTED = "interrupted"
    SKIPPED = "skipped"
    INVALID = "invalid"


class Cause(str, Enum):
    """Why the watch over a trial ended."""

    FINISHED = "finished"  # every rank left by itself
    RANK_FAILED = "rank-failed"
    TIME_UP = "time-up"
    SILENT = "silent"
    STOPPED = "stopped"  # by the user
    AGENT_LOST = "agent-lost"


@dataclass(frozen=True)
class Ending:
    """What was seen: exit codes by rank (negative: a signal), who is to blame, kills for want of memory."""

    cause: Cause
    exits: Mapping[int, int | None]
    culprit: int | None
    seconds: float
    oom_kills: int = 0


@dataclass(frozen=True)
class Judgement:
    outcome: Outcome
    rank: int | None
    detail: str
    transient: bool = False


OUT_OF_MEMORY = re.compile(
    r"out of memory|OutOfMemoryError|can't allocate memory|Cannot allocate memory"
    r"|std::bad_alloc|\bMemoryError\b|CUDNN_STATUS_ALLOC_FAILED|RESOURCE_EXHAUSTED|ResourceExhausted",
    re.IGNORECASE,
)
# Worth another try: the next one may find the port free or the peer awake. Nothing else is.
TRANSIENT = re.compile(
    r"address already in use|EADDRINUSE|connection (?:reset|refused|closed) by peer|connection refused"
    r"|temporary failure in name resolution",
    re.IGNORECASE,
)
REFUSED = re.compile(r"^refused: (.+)$", re.MULTILINE)


def judge(ending: Ending, tails: Mapping[int, str]) -> Judgement:
    """The outcome, the rank it happened on and one line about it; `tails` are the ends of the logs."""
    if ending.cause is Cause.STOPPED:
        return Judgement(Outcome.INTERRUPTED, None, "stopped by the user")
    if ending.cause is Cause.TIME_UP:
        return Judgement(Outcome.TIMEOUT, None, f"not done after {ending.seconds:.0f} s; raise limits.trial")
    if ending.cause is Cause.SILENT:
        silent = "the ranks" if ending.culprit is None else f"rank {ending.culprit}"
        detail = f"no sign of life from {silent}; the logs end with the stacks of all ranks"
        return Judgement(Outcome.HUNG, ending.culprit, detail)
    if ending.cause is Cause.AGENT_LOST:
        return Judgement(Outcome.CRASHED, None, "the process that watched the ranks was killed")
    # The first rank to fall names the cause; the others only lost their peer. An out-of-memory message
    # on any rank outranks the connection errors that it causes elsewhere.
    for rank, tail in sorted(tails.items()):
        if ending.exits.get(rank) and OUT_OF_MEMORY.search(tail):
            return Judgement(Outcome.OOM, rank, f"rank {rank}: {_telling_line(tail, OUT_OF_MEMORY)}")
    if ending.cause is Cause.FINISHED:
        return Judgement(Outcome.OK, None, "")
    rank = ending.culprit or 0
    code = ending.exits.get(rank)
    if code == -signal.SIGKILL and ending.oom_kills:
        return Judgement(
            Outcome.OOM, rank, f"rank {rank} was killed by the kernel: the host ran out of memory"
        )
    tail = tails.get(rank, "")
    if refused := REFUSED.search(tail):
        return Judgement(Outcome.SKIPPED, rank, refused.group(1))
    transient = any(TRANSIENT.search(text) for text in tails.values())
    detail = f"rank {rank} {_describe_exit(code)}: {_telling_line(tail, TRANSIENT)}"
    return Judgement(Outcome.CRASHED, rank, detail.rstrip(": "), transient)


def _describe_exit(code: int | None) -> str:
    if code is None:
        return "vanished"
    if code >= 0:
        return f"left with exit code {code}"
    try:
        return f"was ended by {signal.Signals(-code).name}"
    except ValueError:
        return f"was ended by signal {-code}"


def _telling_line(tail: str, pattern: re.Pattern[str]) -> str:
    """The last line that matches, else the last line there is."""
    lines = [line.strip() for line in tail.splitlines() if line.strip()]
    matching = [line for line in lines if pattern.search(line)]
    chosen = (matching or lines or [""])[-1]
    return chosen if len(chosen) <= 300 else chosen[:297] + "…"
