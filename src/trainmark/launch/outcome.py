"""How a trial ended, decided from what its ranks left behind. No process is touched here."""

from __future__ import annotations

import re
import signal
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from pathlib import Path

from trainmark.base.files import open_regular
from trainmark.launch.job import NodeLoss

TAIL_BYTES = 16384
CONTROL = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]|[^\n\t\x20-\x7e\x85\xa0-\U0010ffff]")


def tail(log: Path) -> str:
    """The end of a log as plain text: what a terminal would obey is taken out."""
    try:
        with open_regular(log) as file:
            file.seek(0, 2)
            file.seek(max(0, file.tell() - TAIL_BYTES))
            return CONTROL.sub("", file.read().decode("utf-8", "replace").replace("\r", "\n"))
    except OSError:
        return ""


class Outcome(str, Enum):
    OK = "ok"
    OOM = "oom"
    TIMEOUT = "timeout"
    HUNG = "hung"
    CRASHED = "crashed"
    INTERRUPTED = "interrupted"
    SKIPPED = "skipped"
    INVALID = "invalid"
    LOST = "lost"


class EndCause(str, Enum):
    """Why the watch over a trial ended."""

    FINISHED = "finished"  # every rank left by itself
    LINGERED = "lingered"  # told to end after its last step, it went on
    RANK_FAILED = "rank-failed"
    TIME_UP = "time-up"
    SILENT = "silent"
    STOPPED = "stopped"  # by the user
    AGENT_LOST = "agent-lost"
    NODE_LOST = "node-lost"


@dataclass(frozen=True)
class JobEnd:
    """What was seen: exit codes by rank (negative: a signal), who is to blame, kills for want of memory,
    whether no rank ever came to its first event, the node of each rank, and what went away with its ranks.
    """

    cause: EndCause
    exits: Mapping[int, int | None]
    culprit: int | None
    seconds: float
    oom_kills: int = 0
    none_began: bool = False
    nodes: Mapping[int, str] = field(default_factory=dict)
    loss: NodeLoss | None = None

    def name(self, rank: int) -> str:
        """`rank 3 on node2`, or only the rank where there is one machine."""
        return f"rank {rank} on {self.nodes[rank]}" if rank in self.nodes else f"rank {rank}"


@dataclass(frozen=True)
class JobOutcome:
    outcome: Outcome
    rank: int | None
    detail: str
    transient: bool = False
    node: str | None = None


OUT_OF_MEMORY = re.compile(
    r"out of memory|OutOfMemoryError|can't allocate memory|Cannot allocate memory"
    r"|std::bad_alloc|MemoryError\b|memory isn't enough"
    r"|(?:CUDNN|CUBLAS)_STATUS_ALLOC_FAILED|RESOURCE_EXHAUSTED|ResourceExhausted"
    r"|Error: allocate failed"  # OneFlow
    r"|Status: 1, message: could not create",  # oneDNN in TensorFlow: its status 1 is out_of_memory
    re.IGNORECASE,
)
# A rank that says this has lost another; it is to blame only where no rank fell for a reason of its own.
LOST_PEER = re.compile(
    r"connection (?:reset|refused|closed) by peer|connection refused|remote process exited|ncclRemoteError",
    re.IGNORECASE,
)
# Worth another try: the next one may find the port free or the peer awake. Nothing else is.
TRANSIENT = re.compile(
    rf"address already in use|EADDRINUSE|temporary failure in name resolution|{LOST_PEER.pattern}",
    re.IGNORECASE,
)
# An exception by its name, behind the mark of its rank if there is one; and whatever stands where a traceback
# ends, since an exception may have any name.
NAMED_ERROR = re.compile(
    r"^(?:\[?\w+\]?: +)?((?:\w+\.)*\w*(?:Error|Exception|Interrupt)(?:: .*|:?$)"
    r"|Fatal Python error:.*| *what\(\):.*)",
    re.MULTILINE,
)
TRACEBACK_END = re.compile(
    r"^(?P<mark>.*)Traceback \(most recent call last\):\n"
    r"(?:(?P=mark)[ \t].*\n|\n)*(?P=mark)(\S.*)",
    re.MULTILINE,
)
# That the program failed, and not why: from who started it, or from Python after what C++ threw.
LESS_TELLING = re.compile(
    r"\b(?:CalledProcessError|ChildFailedError|Process(?:Exited|Raised)Exception|Fatal Python error)\b"
)
LINES_AFTER_AN_ERROR = 60
ERROR_RULES = ((NAMED_ERROR, 1), (TRACEBACK_END, 2))
# `abort()` is how a program in C++ leaves with an exception.
LEFT_ALONE = (None, signal.SIGABRT)
REFUSED = re.compile(r"^refused: (.+)$", re.MULTILINE)


def outcome_of(ending: JobEnd, tails: Mapping[int, str]) -> JobOutcome:
    """The outcome, the rank and node it happened on and one line about it; `tails` end the logs."""
    judgement = _outcome_of(ending, tails)
    if judgement.rank is None or judgement.node is not None:
        return judgement
    return replace(judgement, node=ending.nodes.get(judgement.rank))


def _outcome_of(ending: JobEnd, tails: Mapping[int, str]) -> JobOutcome:
    if ending.cause is EndCause.NODE_LOST and ending.loss is not None:
        detail = f"{ending.loss.node}: {ending.loss.reason}"
        return JobOutcome(Outcome.LOST, None, detail, node=ending.loss.node)
    if ending.cause is EndCause.STOPPED:
        return JobOutcome(Outcome.INTERRUPTED, None, "stopped by the user")
    if ending.cause is EndCause.TIME_UP:
        return JobOutcome(Outcome.TIMEOUT, None, f"not done after {ending.seconds:.0f} s; raise limits.trial")
    if ending.cause is EndCause.SILENT:
        if ending.none_began:
            detail = "no rank began to train: one never came, or they cannot reach each other; see the logs"
            return JobOutcome(Outcome.HUNG, None, detail)
        silent = "the ranks" if ending.culprit is None else ending.name(ending.culprit)
        detail = f"no sign of life from {silent}; the ends of the logs show where the ranks stood"
        return JobOutcome(Outcome.HUNG, ending.culprit, detail)
    if ending.cause is EndCause.AGENT_LOST:
        return JobOutcome(Outcome.CRASHED, None, "the process that watched the ranks was killed")
    if ending.cause is EndCause.LINGERED:
        detail = "all its steps are measured, but a thread or an exit handler held the program: it was ended"
        return JobOutcome(Outcome.OK, None, detail)
    # The first rank to fall names the cause; the others only lost their peer. An out-of-memory message
    # on any rank outranks the connection errors that it causes elsewhere.
    for rank, tail in sorted(tails.items()):
        if ending.exits.get(rank) and OUT_OF_MEMORY.search(tail):
            return JobOutcome(Outcome.OOM, rank, f"{ending.name(rank)}: {_telling_line(tail, OUT_OF_MEMORY)}")
    if ending.cause is EndCause.FINISHED:
        return JobOutcome(Outcome.OK, None, "")
    rank = _first_to_fall(ending, tails)
    code = ending.exits.get(rank)
    if _signal_of(code) == signal.SIGKILL and ending.oom_kills:
        return JobOutcome(
            Outcome.OOM, rank, f"{ending.name(rank)} was killed by the kernel: the host ran out of memory"
        )
    tail = tails.get(rank, "")
    if refused := REFUSED.search(tail):
        return JobOutcome(Outcome.SKIPPED, rank, refused.group(1))
    transient = bool(TRANSIENT.search(tail))
    detail = f"{ending.name(rank)} {_describe_exit(code)}: {_telling_line(tail, TRANSIENT, _signal_of(code))}"
    return JobOutcome(Outcome.CRASHED, rank, detail.rstrip(": "), transient)


def _first_to_fall(ending: JobEnd, tails: Mapping[int, str]) -> int:
    """The first rank seen to leave, unless it only lost a peer that fell for a reason of its own."""
    seen = ending.culprit or 0
    if LOST_PEER.search(tails.get(seen, "")):
        failed = [rank for rank, code in sorted(ending.exits.items()) if code]
        return next((rank for rank in failed if not LOST_PEER.search(tails.get(rank, ""))), seen)
    return seen


def _signal_of(code: int | None) -> int | None:
    """The signal that ended a rank, also where a shell reports it of its child (128 + signal)."""
    number = -code if code is not None and code < 0 else (code or 0) - 128
    return number if number in signal.valid_signals() else None


def _describe_exit(code: int | None) -> str:
    if code is None:
        return "vanished"
    if (number := _signal_of(code)) is None:
        return f"left with exit code {code}"
    named = [known.name for known in signal.Signals if known == number]
    return f"was ended by {named[0] if named else f'signal {number}'}"


def _telling_line(tail: str, pattern: re.Pattern[str], number: int | None = None) -> str:
    """The last line that matches, else the exception that the program left with, else the last line there is.

    A program that another one has ended by a signal did not leave with an exception.
    """
    lines = [line.strip() for line in tail.splitlines() if line.strip()]
    matching = [line for line in lines if pattern.search(line)]
    errors = _errors("\n".join(tail.splitlines()[-LINES_AFTER_AN_ERROR:])) if number in LEFT_ALONE else []
    chosen = (matching or errors or lines or [""])[-1]
    return chosen if len(chosen) <= 300 else chosen[:297] + "…"


def _errors(text: str) -> list[str]:
    """The exceptions that a log names, the more telling last; one that ends in a colon with its next line."""
    found = {}
    for rule, group in ERROR_RULES:
        for match in rule.finditer(text):
            line = match[group].strip()
            after = text[match.end() :].strip().partition("\n")[0] if line.endswith(":") else ""
            found[match.start(group)] = f"{line} {after}".strip()
    return sorted((found[at] for at in sorted(found)), key=lambda line: not LESS_TELLING.search(line))
