"""`trainmark run` on the bed as a person calls it, on a program of a second that can be held in a trial."""

from __future__ import annotations

import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil
from hosts import Hosts
from one_host import wait_until

sys.path.insert(0, str(Path(__file__).parents[1] / "faults"))

from trainmark_run import TrainmarkRun

# The trial whose number is in the file `held` goes on for as long as the file is there. Each rank counts for
# itself how often it was started.
PROGRAM = """
import os, time
from pathlib import Path
from trainmark import probe

place, rank = Path(os.environ["COUNTED_IN"]), os.environ["RANK"]
number = len(list(place.glob(f"rank{rank}-*"))) + 1
(place / f"rank{rank}-{number}").touch()
held = place / "held"
run = probe.start()
step = 0
while step < 25 or (held.exists() and held.read_text() == str(number)):
    time.sleep(0.02)
    run.step(samples=1)
    step += 1
run.end()
"""
GONE_SECONDS = 20.0


class ClusterRun(TrainmarkRun):
    """In a folder with a space and quotes in its name."""

    def __init__(self, folder: Path, hosts: Hosts, *where: str) -> None:
        self.hosts = hosts
        self.where = where
        self.outside = folder / "outside"
        self.hold_file = self.outside / "held"
        place = folder / "it's a suite; $(touch injected)"
        for each in (self.outside, place):
            each.mkdir()
        super().__init__(place)
        (place / "program.py").write_text(PROGRAM)

    def write(self, **fields: Any) -> None:
        self.suite(
            workload={"name": "program", "command": "{python} -u program.py"},
            environment={"COUNTED_IN": str(self.outside)},
            retries=0,
            **fields,
        )

    def begin(self, *more: str, hold: int | None = None) -> subprocess.Popen[str]:
        if hold:
            self.hold_file.write_text(str(hold))
        return self.start("run", "suite.yaml", *self.where, *more)

    def in_trial(self, number: int, ranks: int = 2) -> bool:
        """Whether every rank of the trial that is being held has begun."""
        return all((self.outside / f"rank{rank}-{number}").exists() for rank in range(ranks))

    def wait_for_trial(self, number: int, ranks: int = 2) -> None:
        self.wait_for(lambda: self.in_trial(number, ranks), f"trial {number}")

    def left(self) -> list[str]:
        """What still runs here or on a host, after a while for a node to find out by itself."""
        wait_until(lambda: not self._left(), GONE_SECONDS)
        return self._left()

    def _left(self) -> list[str]:
        here = []
        for pid in self.left_running():
            with suppress(psutil.Error):  # gone, or dead and only not yet reaped
                here.append(f"here: {' '.join(psutil.Process(pid).cmdline())}")
        return here + [f"{name}: {each}" for name in self.hosts.names for each in self.hosts.processes(name)]

    def outcomes(self) -> list[str]:
        return [trial["outcome"] for trial in self.trials()]
