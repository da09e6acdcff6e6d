"""`trainmark run` as a person calls it, on small programs, with a look at what it leaves behind."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import textwrap
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
import yaml

HANG_GUARD_SECONDS = 240.0
MARK = "TRAINMARK_FAULT_TEST"
# A trial of 30 steps; while the file `hold` stands beside the suite, it goes on.
PROGRAM = """
import os, signal, sys, time
from pathlib import Path
from trainmark import probe

rank = int(os.environ["RANK"])
events = Path(os.environ["TRAINMARK_EVENTS"]) / f"rank{rank}.jsonl"
repeat = int(events.parts[-3].strip(".").split(".")[0])
pace = 0.01
end_of_step = time.monotonic
run = probe.start()
step = 0
while step < 30 or Path("hold").exists():
%s
    time.sleep(pace)
    run.step_at(end_of_step(), samples=1)
    step += 1
run.end()
"""


@dataclass(frozen=True)
class Done:
    code: int
    output: str
    errors: str


class TrainmarkRun:
    """One suite in a folder of its own; `runs` may lie elsewhere."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.runs = folder / "runs"
        self.hold = folder / "hold"
        self.started: list[subprocess.Popen[str]] = []
        self._mark = uuid.uuid4().hex

    def program(self, every_step: str = "pass", **fields: Any) -> None:
        """A suite of one program that does `every_step` in each of its steps."""
        body = textwrap.indent(textwrap.dedent(every_step).strip("\n"), "    ")
        (self.folder / "program.py").write_text(PROGRAM % body)
        self.suite(workload={"name": "program", "command": "{python} -u program.py"}, **fields)

    def suite(self, **fields: Any) -> None:
        small = {"device": "cpu", "repeats": 1, "warmup": {"steps": 2}, "measure": {"steps": 10}}
        (self.folder / "suite.yaml").write_text(yaml.safe_dump({**small, **fields}))

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [sys.executable, "-m", "trainmark", *arguments],
            cwd=self.folder,
            env={**os.environ, MARK: self._mark, "TRAINMARK_RUNS": str(self.runs)},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            # A test run in the background has Ctrl-C ignored; a person's terminal has not.
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        )
        self.started.append(process)
        return process

    def finish(self, process: subprocess.Popen[str]) -> Done:
        """How it ended; never with a stack trace, and never with a process left."""
        output, errors = process.communicate(timeout=HANG_GUARD_SECONDS)
        assert "Traceback" not in errors, errors
        assert self.left_running() == []
        return Done(process.returncode, output, errors)

    def run(self, *arguments: str) -> Done:
        return self.finish(self.start("run", "suite.yaml", *arguments))

    def resume(self) -> Done:
        return self.finish(self.start("run", "--resume"))

    def shown(self) -> dict[str, Any]:
        return dict(json.loads(self.finish(self.start("show", "latest", "--json")).output))

    def trials(self) -> list[dict[str, Any]]:
        return list(self.shown()["trials"])

    def trial(self) -> dict[str, Any]:
        (only,) = self.trials()
        return only

    def place(self, name: str) -> Path:
        """A trial's folder in the only run and case: `01`, `.02.part`, `01.interrupted-1`."""
        (case,) = self.runs.glob("*/trials/*")
        return case / name

    def wait_for_steps(self, repeat: int, rank: int = 0) -> None:
        events = f"*/trials/*/.{repeat:02d}.part/events/rank{rank}.jsonl"
        self.wait_for(lambda: any(b'"step"' in path.read_bytes() for path in self.runs.glob(events)), "steps")

    def wait_until_gone(self) -> None:
        self._wait(lambda: not self.left_running(), "every process to end")

    def wait_for(self, condition: Any, what: str) -> None:
        """What comes while the run goes on: if that has ended without it, its errors say why."""

        def come_or_over() -> bool:
            over = all(process.poll() is not None for process in self.started)
            return condition() or over

        self._wait(come_or_over, what)
        assert condition(), f"ended without {what}: {self.started[-1].communicate()[1]}"

    def _wait(self, condition: Callable[[], bool], what: str) -> None:
        deadline = time.monotonic() + HANG_GUARD_SECONDS
        while not condition():
            assert time.monotonic() < deadline, f"waited in vain for {what}"
            time.sleep(0.05)

    def rank_pids(self, rank: int) -> list[int]:
        return [pid for pid, variables in self._processes() if variables.get("RANK") == str(rank)]

    def left_running(self) -> list[int]:
        return [pid for pid, _ in self._processes()]

    def _processes(self) -> list[tuple[int, dict[str, str]]]:
        known = ((p.pid, p.info) for p in psutil.process_iter(["environ", "status"]))
        return [
            (pid, info["environ"])
            for pid, info in known
            if (info["environ"] or {}).get(MARK) == self._mark and info["status"] != psutil.STATUS_ZOMBIE
        ]
