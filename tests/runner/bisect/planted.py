"""A git repository with a slowdown at one commit, and a program whose steps come by the clock.

Each step is due at a time counted from the start: a busy machine delays single steps, and hardly the rate.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

AUTHOR = {
    f"GIT_{role}_{field}": value
    for role in ("AUTHOR", "COMMITTER")
    for field, value in (("NAME", "Ada"), ("EMAIL", "ada@example.org"))
}
PROGRAM = '''"""Change {number}."""
import time

began = time.perf_counter()
for step in range(1, {steps} + 1):
    time.sleep(max(0.0, began + step * {seconds} - time.perf_counter()))
    print("step", step, flush=True)
'''
CRASHING = "raise SystemExit('this commit does not run')\n"


def git(folder: Path, *words: str) -> str:
    """Run git, whatever the user's own settings are."""
    settings = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull}
    done = subprocess.run(
        ["git", *words],
        cwd=folder,
        env={**os.environ, **AUTHOR, **settings},
        check=True,
        capture_output=True,
        text=True,
    )
    return done.stdout.strip()


def program(seconds: float, steps: int = 20, number: int = 0) -> str:
    return PROGRAM.format(number=number, seconds=seconds, steps=steps)


def history(
    folder: Path,
    commits: int,
    culprit: int,
    slowdown: float,
    *,
    broken: tuple[int, ...] = (),
    seconds: float = 0.004,
    steps: int = 20,
) -> list[str]:
    """Commit `train.py` so many times, from `culprit` on slower; return the commits, oldest first."""
    folder.mkdir(parents=True)
    git(folder, "init", "--quiet")
    for number in range(commits):
        period = seconds * (slowdown if number >= culprit else 1.0)
        text = CRASHING + f"# {number}\n" if number in broken else program(period, steps, number)
        (folder / "train.py").write_text(text, encoding="utf-8")
        git(folder, "add", "train.py")
        git(folder, "commit", "--quiet", "-m", f"Change {number}")
    return git(folder, "rev-list", "--reverse", "HEAD").split()
