"""What a trial on many nodes costs the harness: its time, memory and processor time for each of them."""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from benchmarks import child
from benchmarks.local_ssh import LocalSsh
from benchmarks.row import Row

RANK = 'echo "{}" > "$TRAINMARK_EVENTS/rank$RANK.jsonl"; exec sleep %g'


def measure(sizes: Sequence[int] = (100, 400, 1000), seconds: float = 10.0) -> list[Row]:
    rows = []
    for nodes in sizes:
        figures = child.run("benchmarks.agents", str(nodes), str(seconds))
        what = f"agents: {nodes:,} nodes,"
        rows += [
            Row(f"{what} from the first connection to the last rank", figures["start"], "s"),
            Row(
                f"{what} share of a core while they train", 100 * figures["watch_cpu"] / figures["watch"], "%"
            ),
            Row(f"{what} from the last rank's end to the last agent's", figures["end"], "s"),
            Row(f"{what} processor time of a trial, for each", 1000 * figures["cpu"] / nodes, "ms"),
            Row(f"{what} memory at most", figures["memory_mb"], "MB"),
        ]
    return rows


def _trial(nodes: int, seconds: float) -> None:
    from trainmark.launch.carriers.ssh import Ssh
    from trainmark.launch.job import Job
    from trainmark.launch.launcher import ClusterLauncher
    from trainmark.launch.nodes import Node
    from trainmark.launch.outcome import EndCause
    from trainmark.launch.watch import TrialLimits, watch

    with LocalSsh() as ssh, tempfile.TemporaryDirectory() as folder:
        os.environ["PATH"] = f"{ssh.path}:{os.environ['PATH']}"
        place = Path(folder)
        job = Job(("sh", "-c", RANK % seconds), {}, place, place, nodes, ranks_per_node=1)
        launcher = ClusterLauncher(Ssh([Node(f"n{number:04d}", interface="lo") for number in range(nodes)]))
        marks = [(time.monotonic(), time.process_time())]
        session = launcher.start(job)
        watched = time.monotonic()

        def tick() -> None:
            """Note when the last rank has begun, and when none is left."""
            events = len(list((place / "events").iterdir())) if len(marks) == 1 else 0
            if events == nodes:
                marks.append((time.monotonic(), time.process_time()))

        ending = watch(session, job, TrialLimits(), lambda: False, tick)
        over = (time.monotonic(), time.process_time())
        if ending.cause is not EndCause.FINISHED or len(marks) != 2:
            sys.exit(f"{nodes} agents: {ending.cause}, {ending.loss}")
        (began, used_before), (running, used_at_start) = marks
        done = watched + ending.seconds
        figures = {
            "start": running - began,
            "watch": over[0] - running,
            "watch_cpu": over[1] - used_at_start,
            "end": over[0] - done,
            "cpu": over[1] - used_before,
            "memory_mb": child.memory_peak_mb(),
        }
    print(json.dumps(figures))


if __name__ == "__main__":
    _trial(int(sys.argv[1]), float(sys.argv[2]))
