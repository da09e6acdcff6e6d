"""A started job: one agent on each node, heard and ended together; what the ranks print is kept here."""

from __future__ import annotations

import contextlib
import io
import math
import re
import signal
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from trainmark.launch.agent.ranks import RankLog, kill_marked
from trainmark.launch.agent.wire import SENT_HOME, Message
from trainmark.launch.connect import AT_ONCE
from trainmark.launch.connection import AgentConnection, Poller, close_all, gather, scaled_timeout
from trainmark.launch.job import MARK, Exited, Job, NodeLoss
from trainmark.launch.nodes import Node, NodeError

SAMPLES = "samples.jsonl"
# A name is the node's word: it must not lead anywhere else.
RANK_FILE = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,99}")
# Logs open at the same time; the one not written to for longest is closed until its rank prints again.
OPEN_LOGS = 64


class RankFiles:
    """`trouble` is the first error that kept something from being kept whole.

    `bytes_written` counts what grew in the ranks' events and profiles.
    """

    def __init__(self, job: Job, secrets: Sequence[str]) -> None:
        self.trouble: OSError | None = None
        self.bytes_written = 0
        self._job = job
        self._secrets = secrets
        self._logs: dict[int, RankLog] = {}
        self._open: OrderedDict[int, RankLog] = OrderedDict()
        self._samples: io.FileIO | None = None

    def add_output(self, rank: int, chunk: bytes, moment: float) -> None:
        log = self._logs.get(rank)
        if log is None:
            log = self._logs[rank] = RankLog(self._job.log(rank), self._secrets)
        self._open[rank] = log
        self._open.move_to_end(rank)
        if len(self._open) > OPEN_LOGS:
            self._open.popitem(last=False)[1].release()
        log.add(chunk, moment)
        self.trouble = self.trouble or log.trouble

    def add_growth(self, part: str, name: str, grown: bytes) -> None:
        """Append to a file of events or of a profile."""
        if part not in SENT_HOME or not RANK_FILE.fullmatch(name):
            return
        try:
            (self._job.folder / part).mkdir(exist_ok=True)
            with (self._job.folder / part / name).open("ab") as file:
                self.bytes_written += file.write(grown)
        except OSError as error:
            self.trouble = self.trouble or error

    def add_samples(self, lines: bytes) -> None:
        """Twice a second from every node, so the file stays open."""
        try:
            if self._samples is None:
                self._samples = (self._job.folder / SAMPLES).open("ab", buffering=0)
            while lines:
                lines = lines[self._samples.write(lines) :]
        except OSError as error:
            self.trouble = self.trouble or error

    def close(self) -> None:
        for log in self._logs.values():
            log.close()
        self._logs.clear()
        self._open.clear()
        if self._samples is not None:
            self._samples.close()
            self._samples = None


GRACE_SECONDS = 3.0
STOP_SECONDS = 12.0
# What ranks left is waited for this long while it arrives: 10 GB over 1 Gbit/s are 80 s.
MOST_ARRIVAL_SECONDS = 600.0
SWEEP_SECONDS = 4.0
TERMINATED_SECONDS = 1.5
SILENCE_TICK_SECONDS = 0.2
LONGEST_REASON = 300


class AgentSession:
    """`connections` in the order of their nodes; `revisit` opens a new one to a node whose agent has died."""

    def __init__(
        self,
        job: Job,
        connections: Sequence[AgentConnection],
        mark: str,
        secrets: Sequence[str] = (),
        revisit: Callable[[Node], AgentConnection] | None = None,
        why_lost: Callable[[Node], tuple[str, str] | None] = lambda node: None,
    ) -> None:
        self._job = job
        self._connections = connections
        self._mark = f"{MARK}={mark}"
        self._revisit = revisit
        self._why_lost = why_lost
        self._files = RankFiles(job, secrets)
        self._running = set(range(job.world_size))
        share = job.world_size // len(connections)
        self._ranks = {
            connection: range(share * index, share * (index + 1))
            for index, connection in enumerate(connections)
        }
        self._poller = Poller(connections)
        self._silence_due = 0.0
        self._losses: list[NodeLoss] = []
        self._terminated = -math.inf
        self._offsets = dict.fromkeys(connections, 0.0)
        self.lost_output: OSError | None = None
        self.root_pid = connections[0].channel.pid if revisit is None else None

    def node_of(self, rank: int) -> str | None:
        return None if self._revisit is None else self._post_of(rank).node.name

    def set_clock(self, connection: AgentConnection, offset: float) -> None:
        """What to add to the node's monotonic times to have them on ours."""
        self._offsets[connection] = offset

    def exits(self, timeout: float) -> list[Exited]:
        """All that is there is received before it returns: a thousand nodes speak up at any moment."""
        deadline = time.monotonic() + timeout
        gone: list[Exited] = []
        known_losses = len(self._losses)
        while True:
            news = bool(gone) or len(self._losses) > known_losses
            ready = self._poller.wait(0.0 if news else max(0.0, deadline - time.monotonic()))
            for connection in ready:
                left = self._heard(connection, connection.receive())
                self._running.difference_update(exited.rank for exited in left)
                gone += left
                self._note_end(connection)
            self._mind_silence()
            if time.monotonic() >= deadline or (news and not ready):
                break
        if any(exited.code == -signal.SIGTERM for exited in gone):
            self._terminated = time.monotonic()
        return gone

    def lost(self) -> NodeLoss | None:
        return self._losses[0] if self._losses else None

    def doubtful(self) -> bool:
        """Whether a node has been silent for longer than a living one is, or is being cleared."""
        waiting = [
            connection
            for connection in self._connections
            if connection.closed is None and not connection.gone
        ]
        # The first sign of a cancelled allocation may be a rank that was told to end.
        if waiting and time.monotonic() - self._terminated < TERMINATED_SECONDS:
            return True
        return any(
            connection.patience is not None
            and self._poller.clock.now - connection.heard > connection.patience / 3
            for connection in waiting
        )

    def show_stacks(self) -> None:
        for connection in self._connections:
            connection.send({"do": "stacks"})

    def stop(self) -> None:
        for connection in self._connections:
            connection.send({"do": "stop"})
        patience = scaled_timeout(GRACE_SECONDS + STOP_SECONDS, len(self._connections))
        began = time.monotonic()
        deadline = began + patience
        while any(connection.closed is None and not connection.gone for connection in self._connections):
            bytes_before = self._files.bytes_written
            self.exits(0.1)
            now = time.monotonic()
            # Ranks that ended by themselves may have left large profiles, which still arrive.
            if not self._running and self._files.bytes_written > bytes_before:
                deadline = min(now + patience, began + MOST_ARRIVAL_SECONDS)
            if now > deadline:
                break
        codes = close_all(self._connections)
        ended = zip(self._connections, codes, strict=True)
        self._sweep(
            [
                (connection, code)
                for connection, code in ended
                if not connection.gone and not connection.silent
            ]
        )
        self._poller.close()
        self._files.close()

    def _heard(self, connection: AgentConnection, messages: Sequence[Message]) -> list[Exited]:
        """What a node says is its word alone: nothing in it may break us."""
        gone = []
        for message, payload in messages:
            try:
                if (exited := self._hear(connection, message, payload)) is not None:
                    gone.append(exited)
            except (KeyError, TypeError, ValueError, OverflowError):
                self._losses.append(
                    NodeLoss(connection.node.name, f"it sent a malformed message: {str(message)[:80]}")
                )
        return gone

    def _hear(self, connection: AgentConnection, message: dict[str, Any], payload: bytes) -> Exited | None:
        event = message["event"]
        if event in ("exited", "output") and message["rank"] not in self._ranks[connection]:
            raise ValueError("of another node")
        if event == "exited" and message["rank"] in self._running:
            return Exited(int(message["rank"]), int(message["code"]), int(message["oom_kills"]))
        if event == "output":
            self._files.add_output(message["rank"], payload, message["mono"] + self._offsets[connection])
        elif event == "grew":
            self._files.add_growth(message["part"], message["file"], payload)
        elif event == "sampled":
            self._files.add_samples(payload)
        elif event == "full":
            self._losses.append(
                NodeLoss(connection.node.name, printable(f"no room left in {message['path']}"))
            )
        elif event == "trouble":
            self._losses.append(NodeLoss(connection.node.name, printable(message["reason"])))
        elif event == "ended":
            self._losses.append(self._loss(connection, "its agent was asked to end"))
        elif event == "lost-output":
            self.lost_output = OSError(message["number"], message["reason"], message["path"])
        self.lost_output = self.lost_output or self._files.trouble
        return None

    def _mind_silence(self) -> None:
        now = time.monotonic()
        if now < self._silence_due:
            return
        self._silence_due = now + SILENCE_TICK_SECONDS
        for connection in self._connections:
            if connection.closed is None and not connection.gone:
                connection.check_heartbeat(self._poller.clock.now)
                self._note_end(connection)

    def _note_end(self, connection: AgentConnection) -> None:
        if not connection.gone and connection.closed is None:
            return
        self._poller.remove(connection)
        if any(rank in self._running for rank in self._ranks[connection]):
            self._losses.append(
                self._loss(connection, connection.closed or "its agent left before its ranks")
            )

    def _loss(self, connection: AgentConnection, reason: str) -> NodeLoss:
        if self._revisit is None:
            return NodeLoss(None, "the process that watched the ranks was killed")
        # The first loss is the trial's end; a scheduler is not asked about a thousand others.
        why = None if self._losses else self._why_lost(connection.node)
        return NodeLoss(*(why or (connection.node.name, printable(reason))))

    def _post_of(self, rank: int) -> AgentConnection:
        return self._connections[rank * len(self._connections) // self._job.world_size]

    def _sweep(self, killed: Sequence[tuple[AgentConnection, int | None]]) -> None:
        """An agent that was killed could not clean up; what bears the job's mark is ended in its stead.

        One that only cannot be heard does so itself, once its patience with us is over.
        """
        if self._revisit is None:
            if any(code is None or code < 0 for _, code in killed):
                kill_marked(self._mark)
            return
        ahead = iter([connection.node for connection, _ in killed])
        while nodes := list(islice(ahead, AT_ONCE)):
            self._sweep_nodes(nodes, self._revisit)

    def _sweep_nodes(self, nodes: Sequence[Node], revisit: Callable[[Node], AgentConnection]) -> None:
        again: list[AgentConnection] = []
        try:
            for node in nodes:
                with contextlib.suppress(NodeError, OSError):
                    again.append(revisit(node))
            for connection in again:
                connection.send({"do": "greet"})
                connection.send({"do": "sweep", "mark": self._mark})
            gather(again, "swept", scaled_timeout(SWEEP_SECONDS, len(again)))
        finally:
            close_all(again)


def printable(text: str) -> str:
    """What a terminal would obey is taken out, and an end is put to it."""
    return "".join(character for character in text if character.isprintable())[:LONGEST_REASON]


def make_folders(folder: Path) -> None:
    for part in ("logs", "events"):
        (folder / part).mkdir(parents=True, exist_ok=True)
