"""The ranks of a node, from their start to the end of all that they leave behind."""

from __future__ import annotations

import os
import selectors
import shutil
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

from trainmark.launch.agent.output import Output
from trainmark.launch.agent.processes import become_rank, exit_code, kernel_oom_kills, send
from trainmark.launch.agent.wire import Wire
from trainmark.machine.process_tree import descendants

NOT_STARTED = 127  # as a shell says it
READ_BYTES = 1 << 16
ROOM_BYTES = 1 << 20
LAST_WORDS_SECONDS = 5.0


class Ranks:
    """`scratch` is the folder that they write into, where that is on this node."""

    def __init__(self, wire: Wire, selector: selectors.BaseSelector) -> None:
        self.wire = wire
        self.selector = selector
        self.scratch: Path | None = None
        self.running: dict[int, int] = {}  # pid → rank
        # Held to the end: a Popen that is dropped reaps its child behind our back, and the exit is lost.
        self.processes: list[subprocess.Popen[bytes]] = []
        self.outputs: dict[int, Output] = {}  # pipe → output
        self.oom_kills = kernel_oom_kills()

    def start(self, spec: dict[str, Any]) -> None:
        output = Output(spec["rank"], self.wire, spec["log"], spec["secrets"])
        unset = tuple(spec["unset"])
        environment = {name: value for name, value in os.environ.items() if not name.startswith(unset)}
        try:
            process = subprocess.Popen(
                spec["command"],
                env={**environment, **spec["environment"]},
                cwd=spec["folder"],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                preexec_fn=become_rank,
            )
        except OSError as error:
            output.add(f"cannot start: {error}\n".encode())
            output.close()
            self.wire.send({"event": "exited", "rank": spec["rank"], "code": NOT_STARTED, "oom_kills": 0})
            return
        assert process.stdout is not None
        pipe = process.stdout.fileno()
        os.set_blocking(pipe, False)
        self.processes.append(process)
        self.running[process.pid] = spec["rank"]
        self.outputs[pipe] = output
        self.selector.register(pipe, selectors.EVENT_READ)

    def keep_output(self) -> bool:
        """Whether there was any."""
        any_output = False
        for pipe, output in list(self.outputs.items()):
            if self.wire.clogged:
                break
            try:
                chunk = os.read(pipe, READ_BYTES)
            except BlockingIOError:
                continue
            if chunk:
                output.add(chunk)
                any_output = True
            else:
                self.selector.unregister(pipe)
                del self.outputs[pipe]
                output.close()
        return any_output

    def reap(self) -> bool:
        """Whether a child is left; as their subreaper, without one we have no descendants either."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return False
            if pid == 0:
                return True
            rank = self.running.pop(pid, None)
            if rank is not None:
                self.tell_exit(rank, exit_code(status))

    def tell_exit(self, rank: int, code: int) -> None:
        kills = kernel_oom_kills() - self.oom_kills
        self.wire.send({"event": "exited", "rank": rank, "code": code, "oom_kills": kills})
        if code and self.scratch is not None and shutil.disk_usage(self.scratch).free < ROOM_BYTES:
            self.wire.send({"event": "full", "path": str(self.scratch)})

    def end(self, grace: float) -> None:
        """TERM, then KILL until nothing is left: a process may fork while it is being ended.

        What outlives the ranks is not the trial's any more and gets no grace.
        """
        grace = grace if self.running else 0.0
        send(descendants(os.getpid()), signal.SIGTERM if grace else signal.SIGKILL)
        deadline = time.monotonic() + grace
        while self.reap() or descendants(os.getpid()):
            if time.monotonic() >= deadline:
                send(descendants(os.getpid()), signal.SIGKILL)
            self.keep_output()
            self.wire.push()
            time.sleep(0.02)
        last = time.monotonic() + LAST_WORDS_SECONDS
        while time.monotonic() < last and (self.keep_output() or self.wire.clogged):
            self.wire.push()
        for output in self.outputs.values():
            output.close()
