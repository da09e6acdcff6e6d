"""Trials of a few lines of Python on the bed, and a look at what they leave behind on any host."""

from __future__ import annotations

import os
import re
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import psutil
from hosts import Hosts
from one_host import GONE, namespace, wait_until

from trainmark.launch.job import Job
from trainmark.launch.launcher import ClusterLauncher
from trainmark.launch.outcome import JobOutcome, outcome_of
from trainmark.launch.watch import TrialLimits, watch

SOURCE = Path(__file__).resolve().parents[2] / "src"
HANG_GUARD_SECONDS = 60.0
LIMITS = TrialLimits(trial=HANG_GUARD_SECONDS, silence=HANG_GUARD_SECONDS)
# A node that was cut off finds out by itself that nobody listens any more.
LEFT_SECONDS = 20.0
# The slow cable, and what holds an allocation for as long as its salloc lives.
BEDS_OWN = re.compile(r"slow_cable|^cat$")

# A token goes round the ranks, and each waits for it without a limit, as frameworks do. Each has a helper
# in a session of its own, as loaders of data are.
RING = """
import os, socket, subprocess, sys, time
from trainmark import probe
rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
peers = [peer.rsplit(":", 1) for peer in os.environ["TRAINMARK_PEERS"].split(",")]
places = [(address, int(port)) for address, port in peers]
helper = subprocess.Popen(["sleep", "600"], start_new_session=True)
listener = socket.create_server(places[rank])
def connected(place):
    while True:
        try:
            return socket.create_connection(place)
        except ConnectionRefusedError:
            time.sleep(0.02)
ahead = connected(places[(rank + 1) % world])
behind, _ = listener.accept()
def token():
    came = behind.recv(1)
    if not came:
        sys.exit("connection closed by peer")
    return came
run, began = probe.start(), time.monotonic()
going = b"g"
while going == b"g":
    if rank == 0:
        going = b"g" if time.monotonic() - began < float(os.environ["SECONDS"]) else b"e"
        ahead.sendall(going)
        token()
        time.sleep(0.02)
    else:
        going = token()
        ahead.sendall(going)
    run.step(samples=1)
run.end()
helper.kill()
helper.wait()
print("done", flush=True)
"""

DATA_PARALLEL = """
import os, time, torch
import torch.distributed as dist
from trainmark import probe
torch.set_num_threads(1)
dist.init_process_group("gloo")
model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(8, 8))
rule = torch.optim.SGD(model.parameters(), lr=0.01)
run, began = probe.start(), time.monotonic()
going = torch.ones(1)
while going.item():
    rule.zero_grad()
    model(torch.ones(4, 8)).square().mean().backward()
    rule.step()
    going.fill_(float(time.monotonic() - began < float(os.environ["SECONDS"])))
    dist.broadcast(going, 0)
    run.step(samples=4)
    time.sleep(0.02)
run.end()
dist.destroy_process_group()
"""


@dataclass(frozen=True)
class Ended:
    """`seconds` from the fault to the moment at which the trial was over."""

    judgement: JobOutcome
    seconds: float
    leaks: dict[str, list[str]]


def job(
    folder: Path,
    program: str,
    seconds: float = 0.0,
    nodes: int = 3,
    words: Sequence[str] = (),
    **environment: str,
) -> Job:
    folder.mkdir(parents=True)
    return Job(
        command=(sys.executable, "-u", "-c", program, *words),
        environment={
            "PYTHONPATH": str(SOURCE),
            "SECONDS": str(seconds),
            "OMP_NUM_THREADS": "1",
            **environment,
        },
        working_folder=folder,
        folder=folder,
        nodes=nodes,
        ranks_per_node=1,
    )


def carry_out(
    hosts: Hosts, launcher: ClusterLauncher, given: Job, harm: Callable[[], None] = lambda: None
) -> Ended:
    """The job with the harm done to it once every rank has stepped; `leaks` are by host, `here` is ours."""
    assert launcher.nodes  # What holds an allocation stays for the whole run.
    before = carriers()
    session = launcher.start(given)
    with ThreadPoolExecutor(1) as beside:
        harmed = beside.submit(_harmed, given, harm)
        ending = watch(session, given, LIMITS, lambda: failed(harmed), lambda: None)
        over = time.monotonic()
        began = harmed.result()
    tails = {rank: tail(given, rank) for rank in range(given.world_size)}
    wait_until(lambda: not leaks(hosts, before), LEFT_SECONDS)
    return Ended(outcome_of(ending, tails), over - began, leaks(hosts, before))


def _harmed(given: Job, harm: Callable[[], None]) -> float:
    """When it began."""
    assert wait_until(
        lambda: all(stepped(given, rank) for rank in range(given.world_size)), HANG_GUARD_SECONDS
    )
    began = time.monotonic()
    harm()
    return began


def failed(harmed: Future[float]) -> bool:
    """Then there is nothing to wait for."""
    return harmed.done() and harmed.exception() is not None


def stepped(given: Job, rank: int) -> bool:
    path = given.events(rank)
    return path.exists() and b'"step"' in path.read_bytes()


def tail(given: Job, rank: int) -> str:
    path = given.log(rank)
    return path.read_text(errors="replace")[-4096:] if path.exists() else ""


def carriers() -> dict[int, str]:
    """What this process has started that still lives, but for the hosts and the bed's own cable."""
    commands = {}
    for process in psutil.Process().children(recursive=True):
        # A host's process is counted there; one that has ended meanwhile has no command any more.
        with suppress(psutil.NoSuchProcess, *GONE):
            command = " ".join(process.cmdline())
            if namespace(process.pid) == namespace(os.getpid()) and not BEDS_OWN.search(command):
                commands[process.pid] = command
    return commands


def leaks(hosts: Hosts, before: Iterable[int]) -> dict[str, list[str]]:
    by_host = {name: [process.command for process in hosts.processes(name)] for name in hosts.names}
    by_host["here"] = [command for pid, command in carriers().items() if pid not in before]
    return {name: commands for name, commands in by_host.items() if commands}


def rank_pid(hosts: Hosts, name: str) -> int:
    """The number that the process of the only rank there has on its host."""
    (rank,) = [process for process in hosts.processes(name) if "probe.start" in process.command]
    return rank.pid
