"""The loader of token files, timed in fresh processes, round by round."""

from __future__ import annotations

import json
import os
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from trainmark.base.errors import UserError
from trainmark.machine.child_process import run
from trainmark.runner.program import keep_code

PROGRAM = "trainmark.workloads.tokens.bench"
START_SECONDS = 60.0


@dataclass(frozen=True)
class TokenRound:
    """What the loader gave in one round."""

    tokens: int
    sequences: int
    length: int
    format: str
    seconds: float
    cpu_seconds: float

    @property
    def rate(self) -> float:
        return self.tokens / self.seconds

    @property
    def rate_per_core(self) -> float:
        """Tokens for each second of processor time, all threads together."""
        return self.tokens / self.cpu_seconds if self.cpu_seconds else float("nan")


def bench_tokens(
    root: Path, batch: int, length: int, seconds: float, rounds: int, progress: Callable[[str], None]
) -> list[TokenRound]:
    """Time so many rounds; UserError, in the loader's own sentence, where it cannot read the files."""
    with tempfile.TemporaryDirectory(prefix="trainmark-") as folder:
        code = Path(folder) / "code"
        keep_code(code)
        measured = []
        for number in range(rounds):
            progress(f"round {number + 1} of {rounds}")
            measured.append(_one(root, batch, length, seconds, code))
    return measured


def _one(root: Path, batch: int, length: int, seconds: float, code: Path) -> TokenRound:
    lines: list[str] = []
    options = {"--dataset": root.absolute(), "--batch": batch, "--length": length, "--seconds": seconds}
    ended = run(
        [sys.executable, "-m", PROGRAM, *(str(word) for pair in options.items() for word in pair)],
        lines.append,
        limit=START_SECONDS + 4 * seconds,
        environment={**os.environ, "PYTHONPATH": str(code)},
    )
    answer: dict[str, Any] = json.loads(lines[-1]) if lines and lines[-1].startswith("{") else {}
    if "unfit" in answer:
        raise UserError(str(answer["unfit"]))
    if ended.code != 0 or not answer:
        raise UserError(f"the loader failed: {ended.how}: {ended.last_line}")
    return TokenRound(**answer)
