"""Every loader of pictures or tokens on the same files, each round in a fresh process."""

from __future__ import annotations

import json
import os
import statistics
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from trainmark.base.errors import UserError
from trainmark.machine.child_process import ProcessExit, run
from trainmark.machine.frameworks.installed import install_hint
from trainmark.measure.figure import Interval
from trainmark.measure.statistics import median_interval
from trainmark.runner.command import keep_code
from trainmark.runner.inventory import interpreter_of

TOKEN_PROGRAM = "trainmark.workloads.tokens.bench"
TOKEN_START_SECONDS = 60.0


@dataclass(frozen=True)
class LoaderRound:
    """How many images or tokens a loader gave in one round."""

    count: int
    seconds: float
    cpu_seconds: float

    @property
    def rate(self) -> float:
        return self.count / self.seconds

    @property
    def rate_per_core(self) -> float:
        """Images or tokens for each second of processor time, whoever spent it."""
        return self.count / self.cpu_seconds if self.cpu_seconds else float("nan")


@dataclass(frozen=True)
class TokenBench:
    """The rounds of our own loader of tokens; `length`: of the sequences that it gave."""

    format: str
    length: int
    rounds: tuple[LoaderRound, ...]


def bench_tokens(
    root: Path, batch: int, length: int, seconds: float, rounds: int, progress: Callable[[str], None]
) -> TokenBench:
    """Time so many rounds; UserError, in the loader's own sentence, where it cannot read the files."""
    options = {"dataset": root.absolute(), "batch": batch, "length": length, "seconds": seconds}
    limit = TOKEN_START_SECONDS + 4 * seconds
    answers = []
    with code_folder() as code:
        for number in range(rounds):
            progress(f"round {number + 1} of {rounds}")
            ended, answer = _program([sys.executable, "-m", TOKEN_PROGRAM], options, limit, code)
            if "unfit" in answer:
                raise UserError(str(answer["unfit"]))
            if ended.code != 0 or not answer:
                raise UserError(f"the loader failed: {ended.how}: {ended.last_line}")
            answers.append(answer)
    return TokenBench(
        str(answers[0]["format"]), int(answers[0]["length"]), tuple(_round(one, "tokens") for one in answers)
    )


@contextmanager
def code_folder() -> Iterator[Path]:
    """A copy of the code as a run has it, until the end."""
    with tempfile.TemporaryDirectory(prefix="trainmark-") as folder:
        keep_code(Path(folder) / "code")
        yield Path(folder) / "code"


def _program(
    command: Sequence[str], options: Mapping[str, Any], limit: float, code: Path, **environment: str
) -> tuple[ProcessExit, dict[str, Any]]:
    """Run it; return how it ended and its last line that is JSON: frameworks print what they like."""
    heard: list[str] = []
    ended = run(
        [*command, *(str(word) for name, value in options.items() for word in (f"--{name}", value))],
        heard.append,
        limit=limit,
        environment={**os.environ, "PYTHONPATH": str(code), **environment},
    )
    for line in reversed(heard):
        with suppress(ValueError):
            if line.startswith("{"):
                return ended, dict(json.loads(line))
    return ended, {}


def _round(answer: Mapping[str, Any], counted: str) -> LoaderRound:
    return LoaderRound(int(answer[counted]), float(answer["seconds"]), float(answer["cpu_seconds"]))


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
    with code_folder() as code:
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
    options = {
        "dataset": root,
        "batch": settings.batch,
        "image-size": settings.image_size,
        "workers": settings.workers,
        "seconds": settings.seconds,
        "device": settings.device,
    }
    command = [str(_python(loader, settings)), "-m", PROGRAM, *loader.arguments]
    limit = START_SECONDS + 4 * settings.seconds
    ended, answer = _program(command, options, limit, code, OMP_NUM_THREADS=str(settings.workers))
    if ended.code == UNFIT and "unfit" in answer:
        return _with_get(str(answer["unfit"]), loader), False
    if ended.code != 0 or not answer:
        return (f"{ended.how}: {ended.last_line}" if ended.last_line != ended.how else ended.how), True
    return _round(answer, "images")


def _with_get(reason: str, loader: BenchedLoader) -> str:
    return f"{reason} ({loader.get})" if loader.get and loader.get not in reason else reason
