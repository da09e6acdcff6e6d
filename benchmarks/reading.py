"""Reading a foreign log: megabytes a second of one core, beside a plain search, and memory on large files."""

from __future__ import annotations

import datetime
import json
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from benchmarks import child
from benchmarks.row import Row, from_repeats
from trainmark.base.streams import CHUNK
from trainmark.logs.input import clean_blocks
from trainmark.logs.read import ParsedLog, parsed_logs
from trainmark.measure.log_figure import LogFacts, logged_figure

REPEATS = 5
LITERAL = "total_ips"
LARGE = 2_000_000_000
COPIES = 5_000
# The slowest that is allowed, beside what a search of the same bytes takes.
LEAST_MB_A_SECOND = 100
MOST_MEMORY_MB = 200


def measure(size: int = 200_000_000, large: int = LARGE) -> list[Row]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "dllogger.log"
        lines = _write(path, size)
        rows = _speeds(path, lines)
        _write(path, large)
        read = child.run("benchmarks.reading", str(path))
        _write_copies(path, COPIES)
        copies = child.run("benchmarks.reading", "--copies", str(path))
    gigabytes = f"{large / 1e9:g} GB"
    return [
        *rows,
        Row(f"reading: a log of {gigabytes}", read["seconds"], "s"),
        Row(f"reading: memory at most on {gigabytes}", read["memory_mb"], "MB", MOST_MEMORY_MB),
        Row(f"reading: {COPIES:,} copies of a run in one file", copies["seconds"], "s"),
        Row(f"reading: memory at most on {COPIES:,} copies", copies["memory_mb"], "MB", MOST_MEMORY_MB),
    ]


def _speeds(path: Path, lines: int) -> list[Row]:
    """All in turns, so that what else the machine does meets them alike."""
    ways: dict[str, Callable[[Path], int]] = {
        "trainmark read": _read,
        "a search for one word (re)": _search,
        "the same bytes cut into clean lines only": _cleaned,
    }
    if shutil.which("grep"):
        ways["grep -c"] = _grep
    seconds: dict[str, list[float]] = {way: [] for way in ways}
    for _ in range(REPEATS):
        for way, run in ways.items():
            began = time.perf_counter()
            count = run(path)
            seconds[way].append(time.perf_counter() - began)
            if count != lines:
                raise AssertionError(f"{way} found {count} of {lines} lines")
    megabytes = path.stat().st_size / 1e6
    rows = [
        from_repeats(
            f"reading: 100 MB of DLLogger text, {way}",
            [each / megabytes * 100 for each in seconds[way]],
            "s",
            100 / LEAST_MB_A_SECOND if run is _read else None,
        )
        for way, run in ways.items()
    ]
    return [*rows, Row("reading: MB/s", megabytes / sorted(seconds["trainmark read"])[REPEATS // 2], "MB/s")]


def _read(path: Path) -> int:
    (log,) = parsed_logs([str(path)])
    if not isinstance(log, ParsedLog):
        raise AssertionError(log.sentence)
    (run,) = log.runs
    return logged_figure(run.columns(), LogFacts(**run.facts())).steps


def _search(path: Path) -> int:
    word = re.compile(LITERAL.encode())
    with path.open("rb") as file:
        return sum(len(word.findall(block)) for block in clean_blocks(iter(lambda: file.read(CHUNK), b"")))


def _cleaned(path: Path) -> int:
    with path.open("rb") as file:
        return sum(block.count(b"\n") for block in clean_blocks(iter(lambda: file.read(CHUNK), b"")))


def _grep(path: Path) -> int:
    return int(subprocess.run(["grep", "-c", LITERAL, path], capture_output=True, check=True).stdout)


def _write(path: Path, size: int) -> int:
    """Steps of a run as NVIDIA's PyTorch examples log them; gives the number of lines."""
    chance = random.Random(1)
    pieces = [
        f"train.loss : {chance.uniform(1, 8):.5f}  train.total_ips : {chance.gauss(2860, 30):.2f} img/s\n"
        for _ in range(10_007)
    ]
    now = datetime.datetime(2020, 12, 16, 11, 32, 20)
    pause = datetime.timedelta(seconds=0.357961)
    lines = written = 0
    with path.open("w", encoding="ascii") as file:
        while written < size:
            block = []
            for _ in range(20_000):
                now += pause
                block.append(
                    f"DLL {now} - Epoch: {lines // 5004} Iteration: {lines % 5004}  "
                    f"{pieces[lines % len(pieces)]}"
                )
                lines += 1
            written += file.write("".join(block))
    return lines


def _write_copies(path: Path, copies: int) -> None:
    """One short run over and over, as somebody's script might have appended it."""
    _write(path, 1)
    head = "DLL 2020-12-16 11:32:00.000000 - PARAMETER arch : resnet50  batch_size : 128  lr : 0.1\n"
    run = (head + "".join(path.read_text(encoding="ascii").splitlines(keepends=True)[:120])).encode()
    with path.open("wb") as file:
        for _ in range(copies):
            file.write(run)


def _read_copies(path: Path) -> None:
    """As the command does it, its table thrown away."""
    from click.testing import CliRunner

    from trainmark.cli.read import read_command

    answer = CliRunner().invoke(read_command, [str(path)])
    if "copied-logs" not in answer.output:
        raise AssertionError(answer.output[-500:])


if __name__ == "__main__":
    start = time.perf_counter()
    if sys.argv[1] == "--copies":
        _read_copies(Path(sys.argv[2]))
    else:
        _read(Path(sys.argv[1]))
    print(json.dumps({"seconds": time.perf_counter() - start, "memory_mb": child.memory_peak_mb()}))
