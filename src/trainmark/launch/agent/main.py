"""The agent on a node: starts its ranks, sends home what they print and leave, and leaves nothing behind.

It is a process of its own so that killing the harness cannot orphan a rank: when its standard input
closes, or home falls silent for longer than `patience`, it ends every descendant, including those that
left their process group, and then itself.
"""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from trainmark.events.schema import DeviceSample
from trainmark.launch.agent.files import ArchiveReceiver, relocated
from trainmark.launch.agent.ranks import (
    LAST_WORDS_SECONDS,
    READ_BYTES,
    RankProcesses,
    adopt_orphans,
    become_rank,
    catches,
    end_mpi_daemon,
    free_ports,
    kill_marked,
    signal_all,
)
from trainmark.launch.agent.wire import (
    HEARTBEATS_IN_PATIENCE,
    SENT_HOME,
    ClosedError,
    ListeningClock,
    Wire,
)
from trainmark.machine.process_tree import ProcessTree, descendants
from trainmark.machine.reading import ipv4_addresses, ssh_address
from trainmark.machine.samples import CpuSampler, SmiSampler

INTERVAL_SECONDS = 0.5


class NodeSampler:
    """Samples the processors, and the first `gpus` GPUs that the ranks' variables leave, twice a second."""

    def __init__(self, node: str, gpus: int = 0, variables: Mapping[str, str] = os.environ) -> None:
        self.due = time.monotonic() + INTERVAL_SECONDS
        tree, prefix = ProcessTree(os.getpid()), f"{node}/"
        self.cpu = CpuSampler(tree, prefix=prefix)
        self.gpus = SmiSampler(gpus, variables, tree, prefix, become_rank) if gpus else None

    def look(self) -> bytes:
        """Return the lines that are due; empty between two looks."""
        now = time.monotonic()
        if now < self.due:
            return b""
        self.due = now + INTERVAL_SECONDS
        try:
            samples = [self.cpu.sample(), *(self.gpus.sample() if self.gpus else [])]
        except (OSError, ValueError):  # a node of which nothing can be read still trains
            return b""
        return b"".join(map(sample_line, samples))


def sample_line(sample: DeviceSample) -> bytes:
    """Return the event as a line; what is not known is left out."""
    known = {name: value for name, value in vars(sample).items() if value is not None}
    return json.dumps({"event": "device_sample", **known}).encode() + b"\n"


# How often the ranks' event files are looked at: soon again after they grew, seldom while nothing happens.
# Messages, output and exits wake the agent at once.
TICK = 0.1
IDLE_TICK = 1.0
SLOWER = 1.5


def main() -> None:
    adopt_orphans()
    # The terminal's Ctrl-C is the harness's to understand.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    signal.signal(signal.SIGPIPE, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    # Whatever else prints here must not be taken for a message.
    wire = Wire(os.dup(0), os.dup(1))
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(2, 1)
    agent = Agent(wire)
    try:
        agent.serve()
    except ClosedError:
        pass
    except SystemExit:
        wire.send({"event": "ended"})
        raise
    finally:
        agent.end()
    if agent.cut_off:
        end_mpi_daemon()


class Agent:
    def __init__(self, wire: Wire) -> None:
        self.wire = wire
        self.patience: float | None = None
        self.grace = 0.0
        self.tick = TICK
        self.clock = ListeningClock()
        self.heard = self.clock.now
        self.last_pulse = time.monotonic()
        self.started = False
        self.stopped = False
        self.cut_off = False
        self.scratch: Path | None = None
        self.samples: NodeSampler | None = None
        self.events: Counter[str] = Counter()  # file → bytes sent
        self.arrivals = ArchiveReceiver()
        self.child_left = pipe_of_signals(signal.SIGCHLD)
        self.selector = selectors.DefaultSelector()
        self.selector.register(wire.incoming, selectors.EVENT_READ)
        self.selector.register(self.child_left, selectors.EVENT_READ)
        self.ranks = RankProcesses(wire, self.selector)

    def serve(self) -> None:
        """Returns when every rank has left, or home wants it so."""
        while not self.stopped and not (self.started and not self.ranks.running):
            self.clock.look()
            ready = {key.fd for key, _ in self.selector.select(self.wait_seconds())}
            if self.wire.incoming in ready:
                for message, payload in self.wire.receive():
                    self.handle(message, payload)
                self.heard = self.clock.now
            if self.child_left in ready:
                os.read(self.child_left, 4096)
            self.ranks.reap()
            self.ranks.keep_output()
            self.tick = TICK if self.send_events() else min(self.tick * SLOWER, IDLE_TICK)
            self.send_samples()
            self.pulse()
            self.wire.push()
            self.watch_backlog()

    def wait_seconds(self) -> float:
        due = [self.tick]
        if self.samples is not None:
            due.append(self.samples.due - time.monotonic())
        if self.patience is not None:
            due.append(self.patience / HEARTBEATS_IN_PATIENCE - (time.monotonic() - self.last_pulse))
        return max(0.0, min(due))

    def watch_backlog(self) -> None:
        """Wake as soon as home takes more of what waits to be sent."""
        watched = self.wire.outgoing in self.selector.get_map()
        if self.wire.unsent and not watched:
            self.selector.register(self.wire.outgoing, selectors.EVENT_WRITE)
        elif watched and not self.wire.unsent:
            self.selector.unregister(self.wire.outgoing)

    def handle(self, message: dict[str, Any], payload: bytes) -> None:
        """What cannot be done is answered with its reason; the agent goes on."""
        try:
            answer = HANDLERS[message["do"]](self, message, payload)
        except OSError as error:
            where = f": {error.filename}" if error.filename else ""
            answer = {"event": "trouble", "reason": f"{error.strerror or error}{where}"}
        if answer is not None:
            self.wire.send(answer)

    def greet(self, message: dict[str, Any], payload: bytes) -> dict[str, Any]:
        self.patience = message.get("patience")
        return {
            "event": "hello",
            "host": socket.gethostname(),
            "pid": os.getpid(),
            "python": sys.executable,
            "mono": time.monotonic(),
            "addresses": ipv4_addresses(),
            "reached_at": ssh_address(),
        }

    def free_ports(self, message: dict[str, Any], payload: bytes) -> dict[str, Any]:
        return {"event": "ports", "ports": free_ports(message["address"], message["count"])}

    def have(self, message: dict[str, Any], payload: bytes) -> dict[str, Any]:
        return {"event": "have", "path": self.arrivals.have(message["name"])}

    def piece(self, message: dict[str, Any], payload: bytes) -> None:
        self.arrivals.piece(payload)

    def unpack(self, message: dict[str, Any], payload: bytes) -> dict[str, Any]:
        return {"event": "have", "path": self.arrivals.unpack(message["name"], message["sha256"])}

    def ask(self, message: dict[str, Any], payload: bytes) -> None:
        """A short program; nothing else is done meanwhile, and it ends with its limit."""
        places = message.get("places", {})
        words = [sys.executable if word == "{python}" else word for word in message["command"]]
        command = relocated(words, places)
        environment = {**os.environ, **relocated(message.get("environment", {}), places)}
        try:
            done = subprocess.run(
                command,
                input=payload,
                env=environment,
                capture_output=True,
                timeout=message["limit"],
                preexec_fn=become_rank,
            )
        except subprocess.TimeoutExpired:
            self.wire.send({"event": "answer", "code": None, "errors": "", "mono": time.monotonic()})
            return
        errors = done.stderr[-READ_BYTES:].decode("utf-8", "replace")
        answer = {"event": "answer", "code": done.returncode, "errors": errors, "mono": time.monotonic()}
        self.wire.send(answer, done.stdout)

    def sweep(self, message: dict[str, Any], payload: bytes) -> dict[str, Any]:
        return {"event": "swept", "clean": kill_marked(message["mark"])}

    def stacks(self, message: dict[str, Any], payload: bytes) -> None:
        signal_all([pid for pid in descendants(os.getpid()) if catches(pid, signal.SIGUSR1)], signal.SIGUSR1)

    def stop(self, message: dict[str, Any], payload: bytes) -> None:
        self.stopped = True

    def alive(self, message: dict[str, Any], payload: bytes) -> None:
        pass

    def start(self, message: dict[str, Any], payload: bytes) -> None:
        """A folder made here stands for the trial's, unless the ranks can write into that itself."""
        self.grace = message["grace"]
        places = dict(message["places"])
        if message["folder"]:
            root = message.get("scratch") or os.environ.get("TRAINMARK_SCRATCH")
            self.scratch = self.ranks.scratch = Path(tempfile.mkdtemp(prefix="trainmark-", dir=root))
            (self.scratch / "events").mkdir()
            places[message["folder"]] = str(self.scratch)
            variables = {**os.environ, **message["environment"], **message["ranks"][0]["environment"]}
            self.samples = NodeSampler(message["node"], message["gpus"], variables)
        # What all ranks have in common comes once: a list of thousands of peers is long.
        common = relocated(message.get("environment", {}), places)
        for spec in message["ranks"]:
            own = relocated(spec, places)
            self.ranks.start({**own, "environment": {**common, **own["environment"]}})
        self.tick = TICK
        self.started = True

    def send_events(self) -> bool:
        """What grew in the ranks' events and profiles since we last looked; whether anything did."""
        if self.scratch is None:
            return False
        before = sum(self.events.values())
        for part in SENT_HOME:
            with contextlib.suppress(OSError), os.scandir(self.scratch / part) as files:
                for file in files:
                    if ".part" not in file.name:  # not yet what it will be; Kineto adds an ending of its own
                        self.send_growth(part, Path(file.path), file.stat().st_size)
        return sum(self.events.values()) > before

    def send_growth(self, part: str, path: Path, size: int) -> None:
        name = f"{part}/{path.name}"
        with contextlib.suppress(OSError):
            while size > self.events[name] and not self.wire.clogged:
                with path.open("rb") as file:
                    file.seek(self.events[name])
                    grown = file.read(READ_BYTES)
                if not grown:
                    return
                self.wire.send({"event": "grew", "part": part, "file": path.name}, grown)
                self.events[name] += len(grown)

    def send_rest(self) -> None:
        """Send what home does not have yet, for as long as home reads it: a profile exceeds the backlog.

        Of ranks that were stopped before their end, nobody waits for all of it.
        """
        while self.send_events() or self.wire.clogged:
            before = self.wire.unsent
            is_drained = self.wire.drain(LAST_WORDS_SECONDS)
            if not is_drained and (self.stopped or self.wire.unsent == before):
                return

    def send_samples(self) -> None:
        if self.samples is not None and (lines := self.samples.look()):
            self.wire.send({"event": "sampled"}, lines)

    def pulse(self) -> None:
        if self.patience is None:
            return
        now = time.monotonic()
        if now - self.last_pulse >= self.patience / HEARTBEATS_IN_PATIENCE:
            self.last_pulse = now
            self.wire.send({"event": "alive"})
        if self.clock.now - self.heard > self.patience:
            self.cut_off = True
            raise ClosedError("home fell silent")

    def end(self) -> None:
        """Nothing of the ranks is left when it says that it is gone."""
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        self.ranks.end(self.grace)
        self.send_rest()
        self.arrivals.forget()
        if self.scratch is not None:
            shutil.rmtree(self.scratch, ignore_errors=True)
        self.wire.send({"event": "gone"})
        self.wire.drain(LAST_WORDS_SECONDS)


HANDLERS = {
    "greet": Agent.greet,
    "alive": Agent.alive,
    "ports": Agent.free_ports,
    "have": Agent.have,
    "piece": Agent.piece,
    "unpack": Agent.unpack,
    "ask": Agent.ask,
    "start": Agent.start,
    "stacks": Agent.stacks,
    "sweep": Agent.sweep,
    "stop": Agent.stop,
}


def pipe_of_signals(number: signal.Signals) -> int:
    """Readable once the signal has come: a dead rank is seen before its peers die of it."""
    read, write = os.pipe()
    for end in (read, write):
        os.set_blocking(end, False)
    signal.set_wakeup_fd(write, warn_on_full_buffer=False)
    signal.signal(number, lambda *_: None)
    return read
