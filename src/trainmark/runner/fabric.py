"""Starts the program that times messages between ranks, through any launcher, and gathers what it found."""

from __future__ import annotations

import datetime
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from trainmark.events import Event, Mark, RunStart, stream
from trainmark.launch.job import Job, Launcher
from trainmark.launch.nodes import NodeError
from trainmark.launch.outcome import Outcome
from trainmark.launch.watch import TrialLimits
from trainmark.measure.fabric import AllReduce, FabricMeasurement, Link, MessageTime, message_time
from trainmark.runner.command import keep_code, own_job, run_job, usual_threads
from trainmark.suite.model import Topology
from trainmark.workloads.fabric.schedule import GIVE_UP_FACTOR, rounds

PROGRAM = "trainmark.workloads.fabric.pytorch"
DAY = 86400.0
# Longer than nccl-tests may take, during which all ranks are silent.
QUIET_SECONDS = 400.0


class FabricError(Exception):
    """The ranks did not come to an end; the message is one sentence."""


@dataclass(frozen=True)
class FabricRequest:
    """`seconds` are for each link and each all-reduce; `sizes` are bytes."""

    topology: Topology
    device: str
    sizes: tuple[int, ...]
    seconds: float
    together: bool

    @property
    def rounds(self) -> int:
        ranks = range(self.topology.devices)
        return len(rounds([str(rank // self.topology.devices_per_node) for rank in ranks], self.together))

    @property
    def estimate(self) -> float:
        """Seconds that the measurement takes where no link is slow; starting the ranks comes on top."""
        return (self.rounds + 2) * self.seconds


def measure_fabric(
    wanted: FabricRequest, launcher: Launcher, python: str, stop_asked: Callable[[], bool] = lambda: False
) -> FabricMeasurement:
    """FabricError where a rank failed."""
    with tempfile.TemporaryDirectory(prefix="trainmark-") as made:
        code = Path(made, "code")
        keep_code(code)
        quiet = QUIET_SECONDS + GIVE_UP_FACTOR * wanted.seconds * len(wanted.sizes)
        try:
            with launcher.shipped(code):
                job, _, judgement = run_job(
                    lambda folder: _job(wanted, python, folder, code),
                    Path(made),
                    launcher,
                    TrialLimits(DAY, quiet),
                    stop_asked,
                )
        except NodeError as error:
            raise FabricError(str(error)) from error
        if judgement.outcome is not Outcome.OK:
            raise FabricError(judgement.detail)
        taken = datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds")
        events = (event for rank in range(job.world_size) for event in stream.read(job.events(rank)))
        try:
            return fabric_of(events, wanted, taken)
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise FabricError(f"the ranks ended well but left no times: {error!r}") from error


def fabric_of(events: Iterable[Event], wanted: FabricRequest, taken: str) -> FabricMeasurement:
    """What the ranks noted: of each link and size, the times of every turn."""
    starts: dict[int, RunStart] = {}
    times: dict[str, dict[tuple[int, ...], dict[int, list[list[float]]]]] = {"link": {}, "all-reduce": {}}
    printed: list[dict[str, Any]] = []
    for event in events:
        if isinstance(event, RunStart):
            starts[event.rank] = event
        elif isinstance(event, Mark) and event.facts.get("what") in times:
            of_ranks = times[event.facts["what"]].setdefault(tuple(event.facts["ranks"]), defaultdict(list))
            of_ranks[event.facts["bytes"]].append(event.facts["seconds"])
        elif isinstance(event, Mark) and event.facts.get("what") == "nccl-tests":
            printed.append(_printed(event, str(starts[event.rank].facts["node"])))
    nodes = tuple(str(starts[rank].facts["node"]) for rank in sorted(starts))
    return FabricMeasurement(
        taken=taken,
        device=wanted.device,
        backend=str(starts[0].facts["backend"]),
        together=wanted.together,
        nodes=nodes,
        links=tuple(
            Link((first, second), (nodes[first], nodes[second]), tuple(_points(by_size)))
            for (first, second), by_size in sorted(times["link"].items())
        ),
        all_reduces=tuple(
            AllReduce(len(ranks), len({nodes[rank] for rank in ranks}), tuple(_points(by_size)))
            for ranks, by_size in times["all-reduce"].items()
        ),
        nccl_tests=tuple(printed),
    )


def _job(wanted: FabricRequest, python: str, folder: Path, code: Path) -> Job:
    words = ["--device", wanted.device, "--seconds", str(wanted.seconds)]
    words += ["--sizes", ",".join(map(str, wanted.sizes)), *(["--together"] if wanted.together else [])]
    command = (python, "-u", "-m", PROGRAM, *words)
    nodes, ranks = wanted.topology.nodes, wanted.topology.devices_per_node
    return own_job(command, code, folder, nodes=nodes, ranks=ranks, threads=usual_threads(1))


def _points(by_size: dict[int, list[list[float]]]) -> Iterator[MessageTime]:
    for size, turns in sorted(by_size.items()):
        yield message_time(size, turns)


def _printed(event: Mark, node: str) -> dict[str, Any]:
    sizes = [asdict(each) for each in read_nccl_tests(event.facts["text"])]
    return {"node": node, "program": event.facts["program"], "sizes": sizes}


MICROSECOND = 1e-6
GB = 1e9


@dataclass(frozen=True)
class NcclTest:
    """One size, out of place: the mean time that the program printed, and its bus bandwidth."""

    bytes: int
    seconds: float
    bus_bytes_per_second: float


def read_nccl_tests(text: str) -> Iterator[NcclTest]:
    """What a program of nccl-tests prints: one line a size, its columns named in comments above.

    #       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw …
    #        (B)    (elements)                               (us)  (GB/s)  (GB/s)            (us)  (GB/s) …
         1048576        262144     float     sum      -1    27.76   37.78   66.11      0    27.49   38.15 …

    The columns are found by their names, of which versions differ; other lines are passed over.
    """
    columns: list[str] = []
    for line in text.splitlines():
        words = line.split()
        if words[:1] == ["#"] and {"size", "time", "busbw"} <= set(words):
            columns = words[1:]
        elif len(words) == len(columns) and words[0].isdigit():
            # `index` finds the first of two: the times out of place stand before those in place.
            size, time, busbw = (words[columns.index(name)] for name in ("size", "time", "busbw"))
            try:
                yield NcclTest(int(size), float(time) * MICROSECOND, float(busbw) * GB)
            except ValueError:
                continue
