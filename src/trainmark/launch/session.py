"""A started job: one agent on each node, heard together, and ended together."""

from __future__ import annotations

import contextlib
import math
import re
import signal
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from trainmark.launch.agent.log import Log
from trainmark.launch.agent.processes import kill_marked
from trainmark.launch.agent.wire import Message
from trainmark.launch.job import Exited, Job, Loss
from trainmark.launch.node import Node, NodeError
from trainmark.launch.placement import MARK
from trainmark.launch.post import Post, gather, heard_from

GRACE_SECONDS = 3.0
STOP_SECONDS = 12.0
SWEEP_SECONDS = 4.0
TERMINATED_SECONDS = 1.5
LONGEST_REASON = 300
SAMPLES = "samples.jsonl"
EVENT_FILE = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,99}")


class AgentSession:
    """`posts` in the order of their nodes; `revisit` opens a new post on a node whose agent has died."""

    def __init__(
        self,
        job: Job,
        posts: Sequence[Post],
        mark: str,
        secrets: Sequence[str] = (),
        revisit: Callable[[Node], Post] | None = None,
        why_lost: Callable[[Node], tuple[str, str] | None] = lambda node: None,
    ) -> None:
        self._job = job
        self._posts = posts
        self._mark = f"{MARK}={mark}"
        self._secrets = secrets
        self._revisit = revisit
        self._why_lost = why_lost
        self._logs: dict[int, Log] = {}
        self._running = set(range(job.world_size))
        self._losses: list[Loss] = []
        self._terminated = -math.inf
        self._offsets = dict.fromkeys(posts, 0.0)
        self.lost_output: OSError | None = None
        self.root_pid = posts[0].channel.pid if revisit is None else None

    def node_of(self, rank: int) -> str | None:
        return None if self._revisit is None else self._post_of(rank).node.name

    def set_clock(self, post: Post, offset: float) -> None:
        """What to add to the node's monotonic times to have them on ours."""
        self._offsets[post] = offset

    def exits(self, timeout: float) -> list[Exited]:
        waiting = [post for post in self._posts if post.closed is None and not post.gone]
        ready = heard_from(waiting, timeout)
        gone = []
        for post in waiting:
            left = self._heard(post, post.take() if post.incoming in ready else [])
            self._running -= {exited.rank for exited in left}
            gone += left
            post.pulse()
            post.mind_silence()
            if post.gone or post.closed is not None:
                self._note_loss(post)
        if any(exited.code == -signal.SIGTERM for exited in gone):
            self._terminated = time.monotonic()
        return gone

    def lost(self) -> Loss | None:
        return self._losses[0] if self._losses else None

    def doubtful(self) -> bool:
        """Whether a node has been silent for longer than a living one is, or is being cleared."""
        now = time.monotonic()
        waiting = [post for post in self._posts if post.closed is None and not post.gone]
        # The first sign of a cancelled allocation may be a rank that was told to end.
        if waiting and now - self._terminated < TERMINATED_SECONDS:
            return True
        return any(post.patience is not None and now - post.heard > post.patience / 3 for post in waiting)

    def show_stacks(self) -> None:
        for post in self._posts:
            post.say({"do": "stacks"})

    def stop(self) -> None:
        for post in self._posts:
            post.say({"do": "stop"})
        deadline = time.monotonic() + GRACE_SECONDS + STOP_SECONDS
        while any(post.closed is None and not post.gone for post in self._posts):
            self.exits(0.1)
            if time.monotonic() > deadline:
                break
        for post in self._posts:
            code = post.close()
            if not post.gone and not post.silent:
                self._sweep(post, code)
        for log in self._logs.values():
            log.close()
        self._logs.clear()

    def _heard(self, post: Post, messages: Sequence[Message]) -> list[Exited]:
        """What a node says is its word alone: nothing in it may break us."""
        gone = []
        for message, payload in messages:
            try:
                if (exited := self._hear(post, message, payload)) is not None:
                    gone.append(exited)
            except (KeyError, TypeError, ValueError, OverflowError):
                self._losses.append(Loss(post.node.name, f"it said what is no message: {str(message)[:80]}"))
        return gone

    def _hear(self, post: Post, message: dict[str, Any], payload: bytes) -> Exited | None:
        event = message["event"]
        if event in ("exited", "output") and message["rank"] not in self._ranks_of(post):
            raise ValueError("of another node")
        if event == "exited" and message["rank"] in self._running:
            return Exited(int(message["rank"]), int(message["code"]), int(message["oom_kills"]))
        if event == "output":
            self._keep_output(message["rank"], payload, message["mono"] + self._offsets[post])
        elif event == "grew" and EVENT_FILE.fullmatch(message["file"]):
            # The name is the node's word: it must not lead anywhere else.
            self._append(Path("events") / message["file"], payload)
        elif event == "sampled":
            self._append(Path(SAMPLES), payload)
        elif event == "full":
            self._losses.append(Loss(post.node.name, plain(f"no room left in {message['path']}")))
        elif event == "trouble":
            self._losses.append(Loss(post.node.name, plain(message["reason"])))
        elif event == "ended":
            self._losses.append(self._loss(post, "its agent was told to end"))
        elif event == "lost-output":
            self.lost_output = OSError(message["number"], message["reason"], message["path"])
        return None

    def _keep_output(self, rank: int, chunk: bytes, moment: float) -> None:
        log = self._logs.get(rank)
        if log is None:
            log = self._logs[rank] = Log(self._job.log(rank), self._secrets)
        log.add(chunk, moment)
        self.lost_output = self.lost_output or log.trouble

    def _append(self, name: Path, grown: bytes) -> None:
        try:
            with (self._job.folder / name).open("ab") as file:
                file.write(grown)
        except OSError as error:
            self.lost_output = self.lost_output or error

    def _note_loss(self, post: Post) -> None:
        if self._running & set(self._ranks_of(post)):
            self._losses.append(self._loss(post, post.closed or "its agent left before its ranks"))

    def _loss(self, post: Post, reason: str) -> Loss:
        if self._revisit is None:
            return Loss(None, "the process that watched the ranks was killed")
        return Loss(*(self._why_lost(post.node) or (post.node.name, plain(reason))))

    def _ranks_of(self, post: Post) -> range:
        share = self._job.world_size // len(self._posts)
        first = share * list(self._posts).index(post)
        return range(first, first + share)

    def _post_of(self, rank: int) -> Post:
        return self._posts[rank * len(self._posts) // self._job.world_size]

    def _sweep(self, post: Post, code: int | None) -> None:
        """An agent that was killed could not clean up; what bears the job's mark is ended in its stead.

        One that only cannot be heard does so itself, once its patience with us is over.
        """
        if self._revisit is None:
            if code is None or code < 0:
                kill_marked(self._mark)
            return
        with contextlib.suppress(NodeError, OSError):
            again = self._revisit(post.node)
            try:
                again.say({"do": "greet"})
                again.say({"do": "sweep", "mark": self._mark})
                gather([again], "swept", SWEEP_SECONDS)
            finally:
                again.close()


def plain(said: str) -> str:
    """What a terminal would obey is taken out, and an end is put to it."""
    return "".join(character for character in said if character.isprintable())[:LONGEST_REASON]


def make_folders(folder: Path) -> None:
    for part in ("logs", "events"):
        (folder / part).mkdir(parents=True, exist_ok=True)
