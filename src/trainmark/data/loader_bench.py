"""Every loader of pictures or tokens on the same files, each round in a fresh process, round by round."""

from __future__ import annotations

import json
import os
import statistics
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from trainmark.base.errors import UserError
from trainmark.machine.child_process import ProcessExit, run
from trainmark.machine.frameworks.installed import install_hint
from trainmark.measure.figure import Interval
from trainmark.measure.statistics import median_interval
from trainmark.runner.inventory import interpreter_of
from trainmark.runner.program import keep_code

TOKEN_PROGRAM = "trainmark.workloads.tokens.bench"
TOKEN_START_SECONDS = 60.0


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
            measured.append(_token_round(root, batch, length, seconds, code))
    return measured


def _token_round(root: Path, batch: int, length: int, seconds: float, code: Path) -> TokenRound:
    lines: list[str] = []
    options = {"--dataset": root.absolute(), "--batch": batch, "--length": length, "--seconds": seconds}
    ended = run(
        [sys.executable, "-m", TOKEN_PROGRAM, *(str(word) for pair in options.items() for word in pair)],
        lines.append,
        limit=TOKEN_START_SECONDS + 4 * seconds,
        environment={**os.environ, "PYTHONPATH": str(code)},
    )
    answer: dict[str, Any] = json.loads(lines[-1]) if lines and lines[-1].startswith("{") else {}
    if "unfit" in answer:
        raise UserError(str(answer["unfit"]))
    if ended.code != 0 or not answer:
        raise UserError(f"the loader failed: {ended.how}: {ended.last_line}")
    return TokenRound(**answer)


PROGRAM = "trainmark.workloads.images.bench"
UNFIT = 3  # of that program: it cannot be had here, and says why
START_SECONDS = 300.0  # a framework is imported, a compiler runs
ANY = ("folder", "list", "rec", "tfrecord", "ofrecord", "mindrecord", "webdataset", "beton")
UINT8, FLOAT = "uint8", "float32"


@dataclass(frozen=True)
class BenchedLoader:
    """`home` is the framework in whose environment it runs, None for Trainmark's own interpreter."""

    name: str
    about: str
    home: str | None
    formats: tuple[str, ...]
    arguments: tuple[str, ...]
    gives: str = FLOAT
    get: str = ""
    gpu: bool = False

    @property
    def ours(self) -> bool:
        return self.name.startswith("host")


def _host(name: str, about: str, *arguments: str, gives: str = UINT8, get: str = "") -> BenchedLoader:
    return BenchedLoader(name, about, None, ANY, arguments, gives, get)


def _framework(name: str, about: str, *formats: str) -> BenchedLoader:
    return BenchedLoader(name, about, name, formats or ANY, ("--loader", name))


HEADERS = "gcc and the headers of libjpeg-turbo (Debian: libjpeg62-turbo-dev)"
DALI = "pip install nvidia-dali-cuda130 into the PyTorch environment, or --python dali=PYTHON"
LOADERS = (
    _host("host", "ours, native decoder", "--loader", "host", "--codec", "native", get=HEADERS),
    _host(
        *("host-float", "the same, normalised on the processor"),
        *("--loader", "host-float", "--codec", "native"),
        gives=FLOAT,
        get=HEADERS,
    ),
    _host(
        *("host-simplejpeg", "ours, simplejpeg", "--loader", "host", "--codec", "simplejpeg"),
        get="pip install simplejpeg pillow",
    ),
    _host("host-pillow", "ours, Pillow", "--loader", "host", "--codec", "pillow", get="pip install pillow"),
    _framework("pytorch", "DataLoader + Pillow"),
    _framework("tensorflow", "tf.data", "tfrecord"),
    _framework("mxnet", "ImageRecordIter", "rec"),
    _framework("mindspore", "MindDataset", "mindrecord"),
    _framework("paddle", "paddle.io.DataLoader + Pillow", "list", "folder"),
    _framework("oneflow", "OFRecordReader", "ofrecord"),
    BenchedLoader("dali", "NVIDIA DALI on the CPU", "pytorch", ANY, ("--loader", "dali-cpu"), get=DALI),
    BenchedLoader(
        "dali-gpu", "NVIDIA DALI, mixed", "pytorch", ANY, ("--loader", "dali-gpu"), get=DALI, gpu=True
    ),
    BenchedLoader(
        *("ffcv", "FFCV", "pytorch", ("beton",), ("--loader", "ffcv")),
        get="pip install ffcv into the PyTorch environment, or --python ffcv=PYTHON",
    ),
)


@dataclass(frozen=True)
class LoaderBenchSettings:
    image_size: int = 224
    batch: int = 64
    workers: int = 1
    seconds: float = 5.0
    rounds: int = 3
    device: str = "cpu"
    pythons: Mapping[str, str] = field(default_factory=dict)  # of loaders that run elsewhere


@dataclass(frozen=True)
class LoaderRound:
    images: int
    seconds: float
    cpu_seconds: float

    @property
    def rate(self) -> float:
        return self.images / self.seconds

    @property
    def rate_per_core(self) -> float:
        """Images for each second of processor time, whoever spent it."""
        return self.images / self.cpu_seconds if self.cpu_seconds else float("nan")


@dataclass(frozen=True)
class LoaderResult:
    """One loader: its rounds, or why there are none. `failed`: it should have run, and did not."""

    loader: BenchedLoader
    format: str | None
    rounds: tuple[LoaderRound, ...] = ()
    reason: str | None = None
    failed: bool = False

    @property
    def rate(self) -> float:
        return statistics.median(each.rate for each in self.rounds)

    @property
    def per_core(self) -> float:
        return statistics.median(each.rate_per_core for each in self.rounds)

    @property
    def rate_interval(self) -> Interval | None:
        return median_interval([each.rate for each in self.rounds])

    @property
    def per_core_interval(self) -> Interval | None:
        return median_interval([each.rate_per_core for each in self.rounds])


def bench_loaders(
    loaders: Sequence[BenchedLoader],
    roots: Mapping[str, Path],
    settings: LoaderBenchSettings,
    progress: Callable[[str], None] = lambda line: None,
) -> list[LoaderResult]:
    """`roots` has the folder of each format that there is; the rounds go through all loaders in turn."""
    absent = {loader: reason for loader in loaders if (reason := _why_not(loader, roots, settings))}
    rounds: dict[BenchedLoader, list[LoaderRound]] = {loader: [] for loader in loaders}
    failed: set[BenchedLoader] = set()
    with tempfile.TemporaryDirectory(prefix="trainmark-") as folder:
        code = Path(folder) / "code"
        keep_code(code)
        for number in range(settings.rounds):
            for loader in loaders:
                if loader in absent:
                    continue
                progress(f"round {number + 1} of {settings.rounds}: {loader.name}")
                answer = _loader_round(loader, roots[_format(loader, roots)], settings, code)
                if isinstance(answer, LoaderRound):
                    rounds[loader].append(answer)
                else:
                    absent[loader], is_failure = answer
                    failed |= {loader} if is_failure else set()
    return [
        LoaderResult(
            loader,
            _format(loader, roots) or None,
            () if loader in absent else tuple(rounds[loader]),
            absent.get(loader),
            loader in failed,
        )
        for loader in loaders
    ]


def _format(loader: BenchedLoader, roots: Mapping[str, Path]) -> str:
    return next((name for name in loader.formats if name in roots), "")


def _why_not(loader: BenchedLoader, roots: Mapping[str, Path], settings: LoaderBenchSettings) -> str | None:
    if loader.gpu and settings.device != "cuda":
        return "needs a GPU (--device cuda)"
    if not _format(loader, roots):
        return f"needs a set in the format {' or '.join(loader.formats)} (--convert makes one)"
    if _python(loader, settings) is None:
        return f"{loader.home} is not installed; {install_hint(str(loader.home))}"
    return None


def _python(loader: BenchedLoader, settings: LoaderBenchSettings) -> str | None:
    given = settings.pythons.get(loader.name) or settings.pythons.get(loader.name.partition("-")[0])
    return given or (interpreter_of(loader.home) if loader.home else sys.executable)


def _loader_round(
    loader: BenchedLoader, root: Path, settings: LoaderBenchSettings, code: Path
) -> LoaderRound | tuple[str, bool]:
    """One round, or why there is none and whether that is a failure."""
    heard: list[str] = []
    ended = run(
        [
            *(str(_python(loader, settings)), "-m", PROGRAM, *loader.arguments),
            *("--dataset", str(root), "--batch", str(settings.batch)),
            *("--image-size", str(settings.image_size), "--workers", str(settings.workers)),
            *("--seconds", str(settings.seconds), "--device", settings.device),
        ],
        heard.append,
        limit=START_SECONDS + 4 * settings.seconds,
        environment={**os.environ, "PYTHONPATH": str(code), "OMP_NUM_THREADS": str(settings.workers)},
    )
    answer = _answer(heard)
    if ended.code == UNFIT and "unfit" in answer:
        return _with_get(str(answer["unfit"]), loader), False
    if ended.code != 0 or not answer:
        return _how(ended), True
    return LoaderRound(int(answer["images"]), float(answer["seconds"]), float(answer["cpu_seconds"]))


def _with_get(reason: str, loader: BenchedLoader) -> str:
    return f"{reason} ({loader.get})" if loader.get and loader.get not in reason else reason


def _how(ended: ProcessExit) -> str:
    return f"{ended.how}: {ended.last_line}" if ended.last_line != ended.how else ended.how


def _answer(lines: Sequence[str]) -> dict[str, Any]:
    """The last line that is JSON: frameworks print what they like."""
    for line in reversed(lines):
        if line.startswith("{"):
            try:
                answer = json.loads(line)
            except ValueError:
                continue
            if isinstance(answer, dict):
                return answer
    return {}
