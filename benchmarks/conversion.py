"""Converting a set: time an image and memory at growing sizes, and the speed beside a plain copy."""

from __future__ import annotations

import json
import os
import shutil
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from benchmarks import child
from benchmarks.row import Row, from_repeats
from trainmark.data.convert import ConvertRequest, convert
from trainmark.data.jobs import available_processors

MEAN_BYTES = 110_000  # ImageNet's
CLASSES = 10
MB_A_SECOND = 300
MOST_TIMES_THE_TIME, MOST_MORE_MEMORY_MB = 1.5, 20
# As short as a JPEG can be up to its scan; what follows is noise, since nobody decodes it.
HEAD = bytes.fromhex("ffd8 ffc0 0011 08 0177 01f4 03 012200 021101 031101 ffda 000c 03 0100 0211 0311 003f00")


def measure(images: int = 400, doublings: int = 3, repeats: int = 5) -> list[Row]:
    with tempfile.TemporaryDirectory() as folder:
        sizes = [images << doubling for doubling in range(doublings + 1)]
        sources = _write(Path(folder), sizes)
        runs: dict[int, list[dict[str, float]]] = {size: [] for size in sizes}
        for _ in range(repeats):
            for size in sizes:
                out = Path(folder) / "out"
                runs[size].append(child.run("benchmarks.conversion", "one", str(sources[size]), str(out)))
        speeds = [_speeds(sources[sizes[-1]], Path(folder)) for _ in range(repeats)]
    small, large = runs[sizes[0]], runs[sizes[-1]]
    growth = [
        last["seconds"] / sizes[-1] / (first["seconds"] / sizes[0])
        for first, last in zip(small, large, strict=True)
    ]
    more = [last["memory_mb"] - first["memory_mb"] for first, last in zip(small, large, strict=True)]
    times = f"{sizes[-1] // sizes[0]} times the images"
    rows = [
        from_repeats(
            f"conversion: {size:,} images, time an image",
            [run["seconds"] / size * 1e6 for run in runs[size]],
            "µs",
        )
        for size in sizes
    ]
    rows += [
        from_repeats(f"conversion: {times}, times the time an image", growth, "×", MOST_TIMES_THE_TIME),
        from_repeats("conversion: memory at most", [run["memory_mb"] for run in large], "MB"),
        from_repeats(f"conversion: {times}, more memory", more, "MB", MOST_MORE_MEMORY_MB),
        from_repeats("conversion: all processors", [ours for ours, _ in speeds], "MB/s"),
        from_repeats("conversion: a plain copy of the files", [copy for _, copy in speeds], "MB/s"),
        from_repeats(
            f"conversion: the slower of a copy and {MB_A_SECOND} MB/s, over our speed",
            [min(copy, MB_A_SECOND) / ours for ours, copy in speeds],
            "×",
            1.0,
        ),
    ]
    return rows


def _write(folder: Path, sizes: list[int]) -> dict[int, Path]:
    """The largest set is written, the smaller ones are links into it."""
    generator = np.random.default_rng(0)
    sources = {size: folder / f"source{size}" for size in sizes}
    for number in range(sizes[-1]):
        length = max(MEAN_BYTES // 10, round(generator.normal(MEAN_BYTES, MEAN_BYTES / 4)))
        scan = generator.integers(0, 255, length, dtype=np.uint8).tobytes()
        first: Path | None = None
        for size in reversed(sizes):
            if number >= size:
                break
            path = sources[size] / f"train/n{number % CLASSES:02d}/{number:06d}.JPEG"
            path.parent.mkdir(parents=True, exist_ok=True)
            if first is None:
                first = path
                path.write_bytes(HEAD + scan + b"\xff\xd9")
            else:
                os.link(first, path)
    return sources


def _speeds(source: Path, folder: Path) -> tuple[float, float]:
    """Megabytes a second: converted with all processors, and copied into one file."""
    ours = child.run("benchmarks.conversion", "all", str(source), str(folder / "out"))
    began, size = time.perf_counter(), 0
    with (folder / "copy").open("wb") as file:
        for path in sorted(source.rglob("*.JPEG")):
            content = path.read_bytes()
            file.write(content)
            size += len(content)
    seconds = time.perf_counter() - began
    (folder / "copy").unlink()
    return ours["bytes"] / ours["seconds"] / 1e6, size / seconds / 1e6


def _convert(workers: str, source: Path, target: Path) -> None:
    count = available_processors() if workers == "all" else 1
    shards = 4 * count
    began = time.perf_counter()
    outcome = convert(ConvertRequest(source, target, "tfrecord", workers=count, shards=shards))
    seconds = time.perf_counter() - began
    answer = {"seconds": seconds, "bytes": outcome.bytes, "memory_mb": child.memory_peak_mb()}
    shutil.rmtree(target)
    print(json.dumps(answer))


if __name__ == "__main__":
    _convert(sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3]))
