"""`trainmark read`: the figures in other programs' logs."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import click

from trainmark.base.errors import UserError
from trainmark.base.text import one_line, visible
from trainmark.cli.crash import tell_next
from trainmark.cli.options import json_option
from trainmark.cli.terminal import terminal_width
from trainmark.logs.read import GivenFacts, LogReading, ReadLog, ReadRun, as_record, read_logs
from trainmark.logs.recognition import formats, named_format
from trainmark.measure.doubts import DoubtCode
from trainmark.measure.log_figure import LoggedFigure
from trainmark.pages import number
from trainmark.pages.label import rate_unit
from trainmark.view import terminal
from trainmark.view.blocks import Table

SOME_NOT_READ = 1
# A plugin: imported where --protocol asks for it, and by name, as a command of one is.
PROTOCOLS = "trainmark.audit.protocols"


@click.command("read")
@click.argument("paths", nargs=-1, metavar="PATH...")
@click.option(
    "--format", "format_name", metavar="NAME", help="Read as this format, or as a .yaml of your own."
)
@click.option("--formats", "lists_formats", is_flag=True, help="List the known formats.")
@click.option("--batch", type=click.FloatRange(min=0, min_open=True), help="Samples of a step on one device.")
@click.option("--devices", type=click.IntRange(min=1), help="Devices that took part.")
@click.option(
    "--samples-per-step",
    type=click.FloatRange(min=0, min_open=True),
    help="Samples (or tokens) of a step on all devices together.",
)
@click.option("--protocol", metavar="NAME", help="Apply someone's published rule to a folder of logs.")
@click.option("--warmup", type=int, metavar="W", help="The protocol's warm-up, in its own steps.")
@click.option("--train", type=int, metavar="T", help="The protocol's last step.")
@json_option
def read_command(
    paths: tuple[str, ...],
    format_name: str | None,
    lists_formats: bool,
    batch: float | None,
    devices: int | None,
    samples_per_step: float | None,
    protocol: str | None,
    warmup: int | None,
    train: int | None,
    as_json: bool,
) -> int:
    """Read logs: files, folders, globs, archives, or - for standard input.

    The format is recognised from the content. The throughput is ours, samples over time in the steady part
    of the run, whatever the program itself concludes. Where a log tells steps but not samples, --batch,
    --devices or --samples-per-step complete it; a log that says otherwise itself is refused.

    \b
    Examples:
      trainmark read train.log
      trainmark read logs/ results.tar.gz --json
      zcat train.log.gz | trainmark read - --format dllogger-pytorch
      trainmark read train.log --batch 32 --devices 8
      trainmark read --formats
      trainmark read logs/ --protocol dlperf-pytorch-rn50 --warmup 20 --train 120
    """
    if lists_formats:
        return _list_formats(as_json)
    if not paths:
        raise click.UsageError("name what to read: files, folders, globs, archives, or - for standard input.")
    if protocol is not None:
        return _by_protocol(paths, protocol, warmup, train, as_json)
    format = named_format(format_name) if format_name else None
    reading = read_logs(paths, format, GivenFacts(batch, devices, samples_per_step))
    if not reading.logs and len(reading.refusals) == 1:
        raise UserError(visible(reading.refusals[0].sentence))
    for refusal in reading.refusals:
        click.echo(f"trainmark: {visible(refusal.sentence)}", err=True)
    if not reading.logs:
        raise UserError("none of these could be read.")
    if as_json:
        _write_json(reading)
    else:
        for line in lines(reading):
            click.echo(line)
        if len(paths) == 1 and Path(paths[0]).exists():
            tell_next("read", file=paths[0])
    return SOME_NOT_READ if reading.refusals else 0


def _list_formats(as_json: bool) -> int:
    titles = {name: format.title for name, format in sorted(formats().items())}
    width = max(map(len, titles))
    rows = (f"{name:<{width}}  {title}" for name, title in titles.items())
    click.echo(json.dumps(titles, indent=2) if as_json else "\n".join(rows))
    return 0


def _write_json(reading: LogReading) -> None:
    """One run after the other, so that tens of thousands of them are never one text."""
    click.echo('{\n  "runs": [')
    runs = reading.runs
    for place, run in enumerate(runs, 1):
        text = json.dumps(as_record(run), indent=2).replace("\n", "\n    ")
        click.echo("    " + text + ("," if place < len(runs) else ""))
    click.echo("  ]\n}")


def _by_protocol(
    paths: tuple[str, ...], protocol: str, warmup: int | None, train: int | None, as_json: bool
) -> int:
    """Their result on standard output, to the digit; what is wrong with it, and ours, beside it."""
    if len(paths) != 1:
        raise UserError("a protocol is applied to one folder of logs.")
    protocols = import_module(PROTOCOLS)
    reading = protocols.read(protocol, Path(paths[0]), warmup, train)
    click.echo(protocols.as_json(reading.table) if as_json else protocols.as_printed(reading.table))
    for doubt in reading.doubts:
        click.echo(f"! {doubt.code}: {visible(doubt.message)}", err=True)
    if reading.ours and not as_json:
        click.echo(f"\nby wall clock, samples over time:\n{protocols.as_printed(reading.ours)}")
    return 0


RIGHT_ALIGNED = frozenset({2, 4, 5, 6})
HEADER = ("log", "format", "devices", "precision", "batch", "steps", "throughput", "interval", "doubts")


def lines(reading: LogReading) -> Iterator[str]:
    """A table of the runs, what the formats were told by, and the doubts in words."""
    common = _common_folder([log.name for log in reading.logs])
    rows = [_cells(run, common) for run in reading.runs]
    yield from terminal.table(Table(HEADER, rows, RIGHT_ALIGNED), terminal_width())
    yield ""
    if common:
        yield one_line(f"below {common}")
    for log in reading.logs:
        yield one_line(_recognised(log, common))
    for run in reading.runs:
        for doubt in run.doubts:
            if doubt.code is not DoubtCode.COPIED_LOGS:
                yield one_line(f"{run.source.removeprefix(common)}: {doubt.code.value}: {doubt.message}")
    for sentence in reading.copies:
        yield one_line(f"{DoubtCode.COPIED_LOGS.value}: {sentence}")


def _common_folder(names: Sequence[str]) -> str:
    """What the names of several logs begin with, up to a folder; it would fill half of the table."""
    try:
        folder = os.path.commonpath(names) + "/"
    except ValueError:  # whole paths beside relative ones
        return ""
    return folder if all(name.startswith(folder) for name in names) else ""


def _cells(run: ReadRun, common: str) -> list[str]:
    record = as_record(run)
    throughput = record["throughput"]
    return [
        run.source.removeprefix(common),
        run.format,
        _or_missing(record["world_size"]),
        _or_missing(run.precision),
        _or_missing(record["batch_per_device"]),
        f"{run.figure.steps:,}",
        _speed(run.figure),
        number.bounds(throughput["low"], throughput["high"]),
        ", ".join(doubt.code.value for doubt in run.doubts),
    ]


def _speed(figure: LoggedFigure) -> str:
    """Samples a second, or steps a second where the log tells no more."""
    if figure.throughput is not None:
        return f"{number.throughput(figure.throughput)} {rate_unit(figure.unit)}"
    pace = figure.steps_per_second
    return number.MISSING if pace is None else f"{number.throughput(pace)} steps/s"


def _recognised(log: ReadLog, common: str) -> str:
    sentence = f"{log.name.removeprefix(common)}: {log.title}"
    if log.recognition is None:
        sentence += ", as you said"
    else:
        matches, confidence = log.recognition.matches, log.recognition.confidence
        sentence += f", recognised by {matches} line{'s' * (matches != 1)} ({confidence:.0%} sure)"
    if len(log.runs) > 1:
        sentence += f"; it holds {len(log.runs)} runs"
    if log.damaged_lines:
        sentence += f"; {log.damaged_lines} overlong lines were cut"
    return f"{sentence}."


def _or_missing(value: Any) -> str:
    return number.MISSING if value is None else str(value)
