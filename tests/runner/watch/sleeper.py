"""A program that sleeps for the same time in each step, and a suite that measures it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

PROGRAM = """
import os, time
pause = float(os.environ.get("PAUSE", "{pause}"))
print("step 0", flush=True)
end = time.perf_counter()
for step in range(1, 26):
    end += pause
    time.sleep(max(0.0, end - time.perf_counter()))
    print("step", step, flush=True)
"""
SUITE = r"""
name: sleeping
workload:
  name: sleeper
  command: '{python} train.py'
  reader: pattern
  pattern: '^step \d+'
batch_per_device: 10
device: cpu
repeats: 2
warmup: {steps: 5}
measure: {steps: 20}
"""
CASE = "sleeper-b10-1n1g"


def write(folder: Path, pause: float) -> None:
    (folder / "train.py").write_text(PROGRAM.replace("{pause}", str(pause)))
    (folder / "suite.yaml").write_text(SUITE)


def commit(folder: Path, message: str) -> None:
    who = ("-c", "user.name=test", "-c", "user.email=test@example.org")
    for words in (("init", "-q"), ("add", "train.py", "suite.yaml"), (*who, "commit", "-q", "-m", message)):
        subprocess.run(["git", "-C", str(folder), *words], check=True)


def command(*words: str) -> list[str]:
    return [sys.executable, "-m", "trainmark", *words]


def call(folder: Path, *words: str, **variables: str) -> subprocess.CompletedProcess[str]:
    environment = {key: text for key, text in os.environ.items() if key != "OMP_NUM_THREADS"} | variables
    return subprocess.run(command(*words), cwd=folder, env=environment, capture_output=True, text=True)
