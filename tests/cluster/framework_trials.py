"""A few steps of a framework on two ranks, and a look at where they can be reached meanwhile."""

from __future__ import annotations

import json
import os
import secrets
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path

import psutil

from trainmark.launch.job import Job, Launcher
from trainmark.launch.outcome import EndCause, outcome_of, tail
from trainmark.launch.watch import TrialLimits, watch

SOURCE = Path(__file__).resolve().parents[2] / "src"
LIMITS = TrialLimits(trial=280, silence=240)
MARK = "TRAINMARK_TEST_RANKS"
COMPILED = "JAX_COMPILATION_CACHE_DIR"  # on two hosts JAX finds what it has compiled on this machine
EVERYWHERE = {"0.0.0.0", "::"}
LISTENS = "0A"
CONNECT = "import socket, sys; socket.create_connection((sys.argv[1], int(sys.argv[2])), timeout=1)"


@dataclass(frozen=True)
class Door:
    """A socket at which a rank listens; `address` is where, `own` is the address that the rank was given."""

    node: str
    own: str
    address: str
    port: int


@dataclass(frozen=True)
class Trained:
    """`reached` has each address that was tried at a door, and whether somebody was there."""

    ended: EndCause
    detail: str
    losses: list[list[float]]
    doors: list[Door]
    reached: dict[tuple[Door, str], bool]


def job_of(framework: str, python: str, folder: Path, steps: int, code: Path = SOURCE) -> Job:
    """Two ranks on this machine; TensorFlow trains on the CPU in one layout, the others in the other."""
    layout = "NHWC" if framework == "tensorflow" else "NCHW"
    words = ["--batch", "2", "--image-size", "32", "--steps", str(steps), "--layout", layout]
    return Job(
        command=(python, "-u", "-m", f"trainmark.workloads.resnet50.{framework}", *words),
        environment={
            "PYTHONPATH": str(code),
            "OMP_NUM_THREADS": "1",
            MARK: secrets.token_hex(8),
            COMPILED: os.environ[COMPILED],
        },
        working_folder=folder,
        folder=folder,
        nodes=1,
        ranks_per_node=2,
    )


def over_two_nodes(job: Job) -> Job:
    return replace(job, nodes=2, ranks_per_node=1)


def carry_out(
    launcher: Launcher, job: Job, elsewhere: str, on_node: Callable[[str, list[str]], list[str]]
) -> Trained:
    """`elsewhere` is an address of every node that no rank was given; `on_node` has a command run there."""
    open_doors: list[Door] = []
    reached: dict[tuple[Door, str], bool] = {}

    def look() -> None:
        if open_doors or not all(losses_of(job, rank) for rank in range(job.world_size)):
            return
        with suspended(processes(job)) as ranks:  # the kernel goes on to answer at their doors
            open_doors.extend(sorted({door for rank in ranks for door in doors(rank)}, key=str))
            knocks = {}
            for door in open_doors:
                # A socket that is bound to one address is reached at no other: the kernel sees to that.
                for address in (door.own, elsewhere) if door.address in EVERYWHERE else ():
                    argv = on_node(door.node, [sys.executable, "-c", CONNECT, address, str(door.port)])
                    knocks[door, address] = subprocess.Popen(argv, stderr=subprocess.DEVNULL)
            reached.update({place: knock.wait() == 0 for place, knock in knocks.items()})

    ending = watch(launcher.start(job), job, LIMITS, lambda: False, look)
    ranks = range(job.world_size)
    detail = outcome_of(ending, {rank: tail(job.log(rank)) for rank in ranks}).detail
    return Trained(ending.cause, detail, [losses_of(job, rank) for rank in ranks], open_doors, reached)


def losses_of(job: Job, rank: int) -> list[float]:
    if not job.events(rank).exists():
        return []
    events = map(json.loads, job.events(rank).read_text(encoding="utf-8").rpartition("\n")[0].splitlines())
    return [event["loss"] for event in events if "loss" in event]


def processes(job: Job) -> list[psutil.Process]:
    """All of the job, whichever host they are on."""
    members = []
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            if process.environ().get(MARK) == job.environment[MARK]:
                members.append(process)
    return members


@contextmanager
def suspended(ranks: list[psutil.Process]) -> Iterator[list[psutil.Process]]:
    """For as long as this lasts they do not go on, and so do not end either."""
    for rank in ranks:
        rank.suspend()
    try:
        yield ranks
    finally:
        for rank in ranks:
            rank.resume()


def doors(rank: psutil.Process) -> Iterator[Door]:
    variables = rank.environ()
    own = variables["TRAINMARK_PEERS"].split(",")[int(variables["RANK"])].rpartition(":")[0]
    for address, port in listening(Path(f"/proc/{rank.pid}")):
        yield Door(variables["TRAINMARK_NODE"], own, address, port)


def listening(process: Path) -> Iterator[tuple[str, int]]:
    """By the tables of the network that the process itself is in."""
    ours = {link.readlink().name for link in (process / "fd").iterdir()}
    for family, table in ((socket.AF_INET, "tcp"), (socket.AF_INET6, "tcp6")):
        for line in (process / "net" / table).read_text().splitlines()[1:]:
            _, place, _, state, *_, inode = line.split()[:10]
            if state == LISTENS and f"socket:[{inode}]" in ours:
                address, _, port = place.partition(":")
                yield written(family, address), int(port, 16)


def written(family: socket.AddressFamily, digits: str) -> str:
    """The kernel writes an address as words in the order of the machine's bytes."""
    words = [int(digits[at : at + 8], 16).to_bytes(4, sys.byteorder) for at in range(0, len(digits), 8)]
    return socket.inet_ntop(family, b"".join(words)).removeprefix("::ffff:")


def here(_: str, argv: list[str]) -> list[str]:
    return argv
