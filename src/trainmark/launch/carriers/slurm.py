"""Slurm: inside the allocation we are in, or in one that is asked for and given back with the run."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import subprocess
import time
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

from trainmark.base.errors import UserError
from trainmark.launch.bundle import boot_command, connecting_line
from trainmark.launch.carrier import CommandCarrier, PipeChannel, end_with_input
from trainmark.launch.nodes import Node, NodeError
from trainmark.launch.options import LaunchOptions

GRANTED = re.compile(r"Granted job allocation (\d+)\s")
STATE = re.compile(r"\bJobState=(\S+)")
ADDRESS = re.compile(r"\bNodeAddr=(\S+)")
ASK_SECONDS = 5.0
# Of a job's state much depends, and a controller on a busy machine answers late.
ASK_STATE_SECONDS = 30.0
REACH_SECONDS = 1.0
OVER = frozenset({"CANCELLED", "COMPLETED", "FAILED", "TIMEOUT", "NODE_FAIL", "PREEMPTED", "DEADLINE"})


class Slurm(CommandCarrier):
    """`options` are salloc's; nodes given by name are those asked for."""

    name = "slurm"
    hello_seconds = 60.0
    task_facts: Mapping[str, Any] = MappingProxyType({"node_variable": "SLURMD_NODENAME", "detached": False})

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
        self._gone: str | None = None
        self._asked = -REACH_SECONDS

    @classmethod
    def of(cls, choice: LaunchOptions) -> Slurm:
        return cls(choice.nodes, choice.count or 1, choice.options, choice.excluded)

    def nodes(self) -> tuple[Node, ...]:
        if self._nodes is None:
            if self._job is None:
                self._job = self._ask_for_nodes()
            listed = _output_of("scontrol", "show", "hostnames", self._node_list())
            given = {node.name: node for node in self._wanted}
            known = tuple(given.get(name, Node(name)) for name in listed.split())
            self._nodes = tuple(node for node in known if not given or node.name in given)
            if not self._nodes:
                raise UserError(f"Slurm's job {self._job} has none of {', '.join(given) or 'the nodes'}.")
        return self._nodes

    def reach(self, node: Node, command: Sequence[str]) -> PipeChannel:
        # Asked once for a thousand nodes that are reached together.
        recent = time.monotonic() < self._asked + REACH_SECONDS
        if state := self._gone if recent else self.gone():
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
        """Asks Slurm each time: an answer from before a node was lost says nothing of why it was."""
        self._gone = self._gone or self._ask_whether_gone()
        self._asked = time.monotonic()
        return self._gone

    def _ask_whether_gone(self) -> str | None:
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
        return self._srun([node], command)

    def address_of(self, node: Node) -> str:
        """By which Slurm itself reaches it."""
        known = ADDRESS.search(_output_of("scontrol", "--oneliner", "show", "node", node.name))
        return node.address or (known[1] if known else node.usual_address)

    def tasks(self, nodes: Sequence[Node]) -> dict[str, Node]:
        return {node.name: node for node in nodes}

    def start_all(self, nodes: Sequence[Node], python: str, invitation: str) -> PipeChannel:
        """What srun reads goes to all tasks."""
        channel = PipeChannel(self._srun(nodes, boot_command(python)))
        channel.send_all(connecting_line(invitation))
        return channel

    def _srun(self, nodes: Sequence[Node], command: Sequence[str]) -> list[str]:
        job = f"--jobid={self._job}" if self._job else "--jobid=(the allocation)"
        count, names = len(nodes), ",".join(node.name for node in nodes)
        step = [f"--nodes={count}", f"--ntasks={count}", f"--nodelist={names}", "--overlap", "--unbuffered"]
        # Of several, one that ends or whose node fails leaves the others alone.
        several = ["--ntasks-per-node=1", "--no-kill", "--wait=0"] if count > 1 else []
        return [
            *("srun", job, *step, *several),
            *("--quiet", "--cpu-bind=none", "--kill-on-bad-exit=0", *command),
        ]

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
        output = b""
        try:
            while chunk := os.read(self._salloc.stderr.fileno(), 4096):
                output += chunk
                if match := GRANTED.search(output.decode("utf-8", "replace")):
                    return match[1]
        except BaseException:
            self._salloc.terminate()
            self.close()
            raise
        self.close()
        lines = output.decode("utf-8", "replace").strip().splitlines() or ["salloc said nothing"]
        raise UserError(f"Slurm gives no nodes: {lines[-1]}.")

    def _node_list(self) -> str:
        listed = _output_of("squeue", "--noheader", "--jobs", str(self._job), "--format=%N").strip()
        if not listed:
            raise UserError(f"Slurm knows no running job {self._job}; ask for nodes anew.")
        return listed


def sbatch_lines(nodes: int, options: Sequence[str]) -> list[str]:
    """The head of a job's script: one task a node, which starts the ranks below it."""
    if wrong := [word for word in options if not word.startswith("-") or not word.isprintable()]:
        raise UserError(f"{wrong[0]!r} is no option of sbatch; write --partition=gpu as one word.")
    own = ["--job-name=trainmark", f"--nodes={nodes}", "--ntasks-per-node=1", "--no-kill"]
    return [f"#SBATCH {word}" for word in (*own, *options)]


def _output_of(*command: str, seconds: float = ASK_SECONDS) -> str:
    with contextlib.suppress(subprocess.TimeoutExpired, OSError):
        return subprocess.run(command, capture_output=True, text=True, timeout=seconds).stdout
    return ""


def _state(job: str) -> str:
    state = STATE.search(_output_of("scontrol", "--oneliner", "show", "job", job, seconds=ASK_STATE_SECONDS))
    return state[1] if state else "COMPLETED" if _controller_answers() else "UNKNOWN"


def _controller_answers() -> bool:
    return "UP" in _output_of("scontrol", "ping").upper()


def _node_states(names: Sequence[str]) -> list[tuple[str, str]]:
    output = _output_of(
        "sinfo", "--Node", "--noheader", f"--nodes={','.join(names)}", "--format=%N %T"
    ).lower()
    return [(name, state) for name, state in (line.split() for line in output.splitlines() if " " in line)]


CARRIER = Slurm
