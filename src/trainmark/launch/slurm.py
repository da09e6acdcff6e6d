"""Slurm: inside the allocation we are in, or in one that is asked for and given back with the run."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import subprocess
from collections.abc import Sequence

from trainmark.errors import UserError
from trainmark.launch.carrier import CommandCarrier
from trainmark.launch.channel import PipeChannel, end_with_input
from trainmark.launch.choice import Choice
from trainmark.launch.node import Node, NodeError

GRANTED = re.compile(r"Granted job allocation (\d+)\s")
STATE = re.compile(r"\bJobState=(\S+)")
ASK_SECONDS = 5.0
OVER = frozenset({"CANCELLED", "COMPLETED", "FAILED", "TIMEOUT", "NODE_FAIL", "PREEMPTED", "DEADLINE"})


class Slurm(CommandCarrier):
    """`options` are salloc's; nodes given by name are those asked for."""

    name = "slurm"
    hello_seconds = 60.0

    def __init__(
        self, nodes: Sequence[Node], count: int, options: Sequence[str] = (), excluded: Sequence[str] = ()
    ) -> None:
        if shutil.which("srun") is None:
            raise UserError("srun is not on the path; run where Slurm's commands are, or use --launcher ssh.")
        self._wanted = tuple(nodes)
        self._count = len(nodes) or count
        self._options = (*([f"--exclude={','.join(excluded)}"] if excluded else []), *options)
        self._salloc: subprocess.Popen[bytes] | None = None
        self._job = os.environ.get("SLURM_JOB_ID")
        self._nodes: tuple[Node, ...] | None = None

    @classmethod
    def of(cls, choice: Choice) -> Slurm:
        return cls(choice.nodes, choice.count or 1, choice.options, choice.excluded)

    def nodes(self) -> tuple[Node, ...]:
        if self._nodes is None:
            if self._job is None:
                self._job = self._ask_for_nodes()
            listed = _told("scontrol", "show", "hostnames", self._node_list())
            given = {node.name: node for node in self._wanted}
            known = tuple(given.get(name, Node(name)) for name in listed.split())
            self._nodes = tuple(node for node in known if not given or node.name in given)
            if not self._nodes:
                raise UserError(f"Slurm's job {self._job} has none of {', '.join(given) or 'the nodes'}.")
        return self._nodes

    def reach(self, node: Node, command: Sequence[str]) -> PipeChannel:
        if state := self.gone():
            raise NodeError(node.name, state)
        return super().reach(node, command)

    def why_lost(self, node: Node) -> tuple[str, str] | None:
        for name, state in _node_states([each.name for each in self._nodes or ()]):
            if state.startswith(("down", "fail")):
                return name, f"Slurm says that the node is {state}"
        if gone := self.gone():
            return node.name, gone
        return None

    def gone(self) -> str | None:
        if self._job is None:
            return None
        state = _state(self._job)
        if state == "COMPLETING":
            return f"Slurm's job {self._job} was ended"
        return f"Slurm's job {self._job} is over: {state}" if state in OVER else None

    def close(self) -> None:
        if self._salloc is None:
            return
        salloc, self._salloc = self._salloc, None
        # The command that holds the allocation ends with its input, also where we are killed.
        end_with_input(salloc, ASK_SECONDS)

    def words(self, node: Node, command: Sequence[str]) -> list[str]:
        job = f"--jobid={self._job}" if self._job else "--jobid=(the allocation)"
        step = ("--nodes=1", "--ntasks=1", f"--nodelist={node.name}", "--overlap", "--unbuffered", "--quiet")
        return ["srun", job, *step, "--cpu-bind=none", "--kill-on-bad-exit=0", *command]

    def _ask_for_nodes(self) -> str:
        """Waits in the queue for as long as it takes; Ctrl-C gives the place up."""
        named = [f"--nodelist={','.join(node.name for node in self._wanted)}"] if self._wanted else []
        words = ["salloc", f"--nodes={self._count}", "--job-name=trainmark", "--no-kill", *named]
        self._salloc = subprocess.Popen(
            [*words, *self._options, "cat"],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
        assert self._salloc.stderr is not None
        said = b""
        try:
            while told := os.read(self._salloc.stderr.fileno(), 4096):
                said += told
                if found := GRANTED.search(said.decode("utf-8", "replace")):
                    return found[1]
        except BaseException:
            self._salloc.terminate()
            self.close()
            raise
        self.close()
        lines = said.decode("utf-8", "replace").strip().splitlines() or ["salloc said nothing"]
        raise UserError(f"Slurm gives no nodes: {lines[-1]}.")

    def _node_list(self) -> str:
        listed = _told("squeue", "--noheader", "--jobs", str(self._job), "--format=%N").strip()
        if not listed:
            raise UserError(f"Slurm knows no running job {self._job}; ask for nodes anew.")
        return listed


def sbatch_lines(nodes: int, options: Sequence[str]) -> list[str]:
    """The head of a job's script: one task a node, which starts the ranks below it."""
    if wrong := [word for word in options if not word.startswith("-") or not word.isprintable()]:
        raise UserError(f"{wrong[0]!r} is no option of sbatch; write --partition=gpu as one word.")
    own = ["--job-name=trainmark", f"--nodes={nodes}", "--ntasks-per-node=1", "--no-kill"]
    return [f"#SBATCH {word}" for word in (*own, *options)]


def _told(*command: str) -> str:
    with contextlib.suppress(subprocess.TimeoutExpired, OSError):
        return subprocess.run(command, capture_output=True, text=True, timeout=ASK_SECONDS).stdout
    return ""


def _state(job: str) -> str:
    found = STATE.search(_told("scontrol", "--oneliner", "show", "job", job))
    return found[1] if found else "COMPLETED" if _controller_answers() else "UNKNOWN"


def _controller_answers() -> bool:
    return "UP" in _told("scontrol", "ping").upper()


def _node_states(names: Sequence[str]) -> list[tuple[str, str]]:
    told = _told("sinfo", "--Node", "--noheader", f"--nodes={','.join(names)}", "--format=%N %T").lower()
    return [(name, state) for name, state in (line.split() for line in told.splitlines() if " " in line)]
