"""`trainmark data bench`: how fast a loader delivers."""

from __future__ import annotations

import statistics
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from trainmark.base.errors import UserError, nearest
from trainmark.cli.options import json_option
from trainmark.cli.terminal import rendered, terminal_width
from trainmark.data.command import tell
from trainmark.pages.number import counted
from trainmark.view.blocks import Items, Page, Sentence, Table

if TYPE_CHECKING:
    from trainmark.data.loader_bench import BenchedLoader, LoaderBenchSettings, LoaderResult
    from trainmark.measure.figure import Interval


FAILED = 1


@click.command("bench")
@click.argument("paths", metavar="PATH…", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--loader", "names", multiple=True, metavar="NAME", help="Only this one; may be repeated.")
@click.option("--image-size", type=click.IntRange(8, 4096), default=224, show_default=True)
@click.option(
    "--batch", type=click.IntRange(1), default=64, show_default=True, help="Images or sequences in a batch."
)
@click.option(
    "--length", type=click.IntRange(1), default=1024, show_default=True, help="Tokens of a sequence."
)
@click.option("--workers", type=click.IntRange(1), help="Threads or processes of a loader; else all cores.")
@click.option(
    "--seconds", type=click.FloatRange(0.1, 600), default=5.0, show_default=True, help="Of a round."
)
@click.option("--rounds", type=click.IntRange(1, 100), default=3, show_default=True)
@click.option("--device", type=click.Choice(["cpu", "cuda"]), default="cpu", show_default=True)
@click.option("--convert", "converts", is_flag=True, help="Make the missing formats in a temporary folder.")
@click.option(
    "--python", "pythons", multiple=True, metavar="LOADER=PYTHON", help="The interpreter that has a loader."
)
@json_option
def bench_command(
    paths: tuple[Path, ...],
    names: tuple[str, ...],
    image_size: int,
    batch: int,
    length: int,
    workers: int | None,
    seconds: float,
    rounds: int,
    device: str,
    converts: bool,
    pythons: tuple[str, ...],
    as_json: bool,
) -> int:
    """Time every loader that is installed on the same files, side by side.

    PATH is a set, or several of the same images in other formats. Each loader runs in a fresh process of its
    own environment, one after another, and so again for every round. Images a second for each core are by
    processor time, so that hidden threads count. Exit code 1: a loader failed.

    Where PATH holds tokens, our own loader is timed, which all frameworks train by.

    \b
    Examples:
      trainmark data bench pictures
      trainmark data bench pictures pictures-rec --loader host --loader mxnet
      trainmark data bench pictures --convert --workers 2 --json
      trainmark data bench corpus --length 1024 --batch 64
    """
    from trainmark.data.loader_bench import LoaderBenchSettings, bench_loaders
    from trainmark.data.tokens.source import is_token_set

    if len(paths) == 1 and is_token_set(paths[0]):
        return _bench_tokens(paths[0], batch, length, seconds, rounds, as_json)
    chosen = _chosen(names)
    settings = LoaderBenchSettings(
        image_size, batch, workers or _cores(), seconds, rounds, device, _interpreters(pythons, chosen)
    )
    roots = _roots(paths, batch)
    with ExitStack() as stack:
        if converts:
            folder = stack.enter_context(tempfile.TemporaryDirectory(prefix=".bench-", dir=paths[0].parent))
            _convert(chosen, roots, Path(folder))
        standings = bench_loaders(chosen, roots, settings, lambda line: click.echo(line, err=True))
    page = loaders_page(standings, settings)
    tell(to_json(standings, settings), rendered(page, "text", width=terminal_width()).rstrip(), as_json)
    return FAILED if any(each.failed for each in standings) else 0


def _bench_tokens(path: Path, batch: int, length: int, seconds: float, rounds: int, as_json: bool) -> int:
    from trainmark.data.loader_bench import bench_tokens
    from trainmark.data.tokens.source import check_batch

    check_batch(path, batch, length)
    measured = bench_tokens(path, batch, length, seconds, rounds, lambda line: click.echo(line, err=True))
    rate = statistics.median(one.rate for one in measured.rounds)
    per_core = statistics.median(one.rate_per_core for one in measured.rounds)
    record = {
        "path": str(path),
        "format": measured.format,
        "batch": batch,
        "length": measured.length,
        "tokens_per_second": rate,
        "tokens_per_second_per_core": per_core,
        "rounds": [
            {"tokens": one.count, "seconds": one.seconds, "cpu_seconds": one.cpu_seconds}
            for one in measured.rounds
        ],
    }
    text = (
        f"{path} ({measured.format}): {rate / 1e6:,.1f} million tokens/s, {per_core / 1e6:,.1f} for each "
        f"core; length {measured.length:,}, batch {batch}, {counted(rounds, 'round')} of {seconds:g} s."
    )
    tell(record, text, as_json)
    return 0


def _chosen(names: Sequence[str]) -> list[BenchedLoader]:
    from trainmark.data.loader_bench import LOADERS

    known = [loader.name for loader in LOADERS]
    for name in names:
        if name not in known:
            raise UserError(
                f"there is no loader '{name}'{nearest(name, known)}; there are {', '.join(known)}."
            )
    return [loader for loader in LOADERS if not names or loader.name in names]


def _interpreters(pythons: Sequence[str], chosen: Sequence[BenchedLoader]) -> dict[str, str]:
    interpreters = {}
    for text in pythons:
        name, _, path = text.partition("=")
        if not path:
            raise UserError(f"--python {text}: say LOADER=PYTHON, as in dali=venv/bin/python.")
        if not Path(path).is_file():
            raise UserError(f"--python {text}: there is no interpreter {path}.")
        interpreters[name] = str(Path(path).absolute())
    return interpreters


def _roots(paths: Sequence[Path], batch: int) -> dict[str, Path]:
    """Return the folder of each format; refuse a set that does not fill one batch."""
    from trainmark.data.files import read_dataset

    datasets = {path: read_dataset(path) for path in paths}
    for path, dataset in datasets.items():
        images = dataset.splits.get("train", 0)
        if images < batch:
            raise UserError(
                f"{path} has {images} training images, fewer than a batch of {batch}; lower --batch."
            )
    return {dataset.format: path.absolute() for path, dataset in datasets.items()}


def _convert(chosen: Sequence[BenchedLoader], roots: dict[str, Path], folder: Path) -> None:
    """What a loader needs and no set has, from the first set."""
    from trainmark.data.convert import ConvertRequest, convert

    source = next(iter(roots.values()))
    for loader in chosen:
        if not any(name in roots for name in loader.formats):
            wanted = loader.formats[0]
            click.echo(f"converting to {wanted}", err=True)
            convert(ConvertRequest(source, folder / wanted, wanted))
            roots[wanted] = (folder / wanted).absolute()


def _cores() -> int:
    from trainmark.machine.devices import usable_cores

    return max(1, int(usable_cores()))


def loaders_page(standings: Sequence[LoaderResult], settings: LoaderBenchSettings) -> Page:
    measured = _by_rate_per_core(standings)
    rows = [
        [
            each.loader.name,
            each.loader.gives,
            each.format,
            f"{each.rate:,.1f}",
            _range(each.rate_interval),
            f"{each.per_core:,.1f}",
            _range(each.per_core_interval),
            each.loader.about,
        ]
        for each in measured
    ]
    head = ["loader", "gives", "format", "img/s", "", "img/s a core", "", ""]
    conditions = (
        f"{settings.image_size}², batch {settings.batch}, {counted(settings.workers, 'worker')}, "
        f"{counted(settings.rounds, 'round')} of {settings.seconds:g} s; ranges over the rounds"
    )
    reasons = [f"{each.loader.name}: {each.reason}" for each in standings if each.reason]
    verdict = _verdict(measured, standings)
    return Page(
        "loaders",
        [
            Sentence(conditions),
            *([Table(head, rows, frozenset({3, 5}))] if rows else []),
            *([Sentence(verdict)] if verdict else []),
            Items(reasons),
        ],
    )


def _by_rate_per_core(standings: Sequence[LoaderResult]) -> list[LoaderResult]:
    return sorted((each for each in standings if each.rounds), key=lambda each: -each.per_core)


def _range(interval: Interval | None) -> str:
    return f"[{interval.low:,.1f}, {interval.high:,.1f}]" if interval else ""


def _verdict(measured: Sequence[LoaderResult], standings: Sequence[LoaderResult]) -> str | None:
    """Who is first for each core, and where that is not ours, what is known of the reason."""
    others = [each for each in measured if not each.loader.ours]
    ours = [each for each in measured if each.loader.ours]
    if not ours or not others:
        return None
    # What gives float32 does more: ours is compared as it gives the same.
    same = [each for each in ours if each.loader.gives == others[0].loader.gives] or ours
    ratio = same[0].per_core / others[0].per_core
    comparison = (
        f"{same[0].loader.name} against {others[0].loader.name}, the next best: ×{ratio:.2f} for each core."
    )
    if ratio >= 1:
        return comparison
    absent = [each.reason for each in standings if each.loader.name == "host" and each.reason]
    if absent:
        return f"{comparison} Ours is behind: its native decoder is not there ({absent[0]})."
    if others[0].loader.gpu:
        return f"{comparison} Ours is behind: that one decodes on the GPU."
    mine, theirs = same[0].per_core_interval, others[0].per_core_interval
    if mine and theirs and mine.high >= theirs.low:
        return f"{comparison} The ranges overlap: more --rounds would tell."
    return (
        f"{comparison} Ours is behind on these images: `--image-size`, their size and their quality decide."
    )


def to_json(standings: Sequence[LoaderResult], settings: LoaderBenchSettings) -> dict[str, Any]:
    measured = _by_rate_per_core(standings)
    return {
        "settings": {name: value for name, value in vars(settings).items() if name != "pythons"},
        "loaders": [_one_json(each) for each in standings],
        "fastest": max(measured, key=lambda each: each.rate).loader.name if measured else None,
        "fastest_per_core": measured[0].loader.name if measured else None,
        "verdict": _verdict(measured, standings),
    }


def _one_json(each: LoaderResult) -> dict[str, Any]:
    fields: dict[str, Any] = {
        "loader": each.loader.name,
        "about": each.loader.about,
        "gives": each.loader.gives,
        "format": each.format,
        "reason": each.reason,
        "failed": each.failed,
        "rounds": [
            {"images": one.count, "seconds": one.seconds, "cpu_seconds": one.cpu_seconds}
            for one in each.rounds
        ],
    }
    if each.rounds:
        fields["images_per_second"] = _figure(each.rate, each.rate_interval)
        fields["images_per_second_per_core"] = _figure(each.per_core, each.per_core_interval)
    return fields


def _figure(value: float, interval: Interval | None) -> dict[str, Any]:
    bounds = (interval.low, interval.high, interval.confidence) if interval else (None, None, None)
    return {"median": value, **dict(zip(("low", "high", "confidence"), bounds, strict=True))}
