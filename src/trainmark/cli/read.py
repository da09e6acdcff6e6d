"""`trainmark read`: the figures in other programs' logs."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import click

from trainmark.base.errors import UserError
from trainmark.base.text import one_line, visible
from trainmark.cli.crash import tell_next
from trainmark.cli.options import json_option
from trainmark.cli.terminal import terminal_width
from trainmark.logs.logged_run import LoggedRun
from trainmark.logs.read import OpenLog
from trainmark.logs.recognition import Recognition
from trainmark.measure.doubts import Doubt, DoubtCode
from trainmark.measure.doubts import doubt as new_doubt
from trainmark.measure.log_figure import (
    LogFacts,
    LoggedFigure,
    columns_digest,
    find_copies,
    logged_figure,
    times_digest,
)
from trainmark.measure.statistics import Floats
from trainmark.pages import number
from trainmark.pages.label import rate_unit
from trainmark.report.format.table import Table

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
    from trainmark.base.errors import UserError
    from trainmark.logs.read import each_log
    from trainmark.logs.recognition import named_format
    from trainmark.logs.streams import SourceRefusal

    format = named_format(format_name) if format_name else None
    given = Given(batch, devices, samples_per_step)
    logs: list[ReadLog] = []
    refusals: list[SourceRefusal] = []
    for answer in each_log(paths, partial(shown, given=given, figures=Figures()), format):
        if isinstance(answer, SourceRefusal):
            refusals.append(answer)
        else:
            logs.append(answer)
    if not logs and len(refusals) == 1:
        raise UserError(visible(refusals[0].sentence))
    for refusal in refusals:
        click.echo(f"trainmark: {visible(refusal.sentence)}", err=True)
    if not logs:
        raise UserError("none of these could be read.")
    copied = mark_copies(logs)
    if as_json:
        _write_json([run for log in logs for run in log.runs])
    else:
        for line in lines(logs, copied):
            click.echo(line)
        if len(paths) == 1 and Path(paths[0]).exists():
            tell_next("read", file=paths[0])
    return SOME_NOT_READ if refusals else 0


def _list_formats(as_json: bool) -> int:
    from trainmark.logs.recognition import formats

    titles = {name: format.title for name, format in sorted(formats().items())}
    width = max(map(len, titles))
    rows = (f"{name:<{width}}  {title}" for name, title in titles.items())
    click.echo(json.dumps(titles, indent=2) if as_json else "\n".join(rows))
    return 0


def _write_json(runs: list[dict[str, Any]]) -> None:
    """One run after the other, so that tens of thousands of them are never one text."""
    click.echo('{\n  "runs": [')
    for place, run in enumerate(runs):
        text = json.dumps(run, indent=2).replace("\n", "\n    ")
        click.echo("    " + text + ("," if place + 1 < len(runs) else ""))
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


MOST_FIGURES = 256
RIGHT_ALIGNED = frozenset({2, 4, 5, 6})
HEADER = ("log", "format", "devices", "precision", "batch", "steps", "throughput", "interval", "doubts")


@dataclass(frozen=True)
class Given:
    """What the user knows and the log does not say."""

    batch: float | None = None
    devices: int | None = None
    samples_per_step: float | None = None

    def complete(self, facts: LogFacts, source: str) -> LogFacts:
        """Return the facts with what they lack; UserError where the log itself says otherwise."""
        self._require("--batch", self.batch, facts.batch_per_device, "the batch of a device", source)
        self._require("--devices", self.devices, facts.world_size, "the number of devices", source)
        of_a_step = facts.samples_of_a_step()
        samples = self.samples_per_step
        self._require("--samples-per-step", samples, of_a_step, f"the {facts.unit} of a step", source)
        whole = replace(
            facts,
            batch_per_device=facts.batch_per_device or self.batch,
            world_size=facts.world_size or self.devices,
            samples_per_step=facts.samples_per_step or samples,
        )
        given = self.batch or self.devices
        if given and facts.global_batch and whole.batch_per_device and whole.world_size:
            batch = whole.batch_per_device * whole.world_size
            if facts.global_batch % batch:  # a step may be of several batches
                raise UserError(
                    f"{source}: the log has {facts.global_batch:g} {facts.unit} a step, no multiple of "
                    f"{whole.batch_per_device:g} × {whole.world_size}: correct --batch or --devices."
                )
        return whole

    @staticmethod
    def _require(option: str, given: float | None, logged: float | None, what: str, source: str) -> None:
        if given is not None and logged is not None and given != logged:
            raise UserError(
                f"{source}: {option} says {given:g}, but the log has {logged:g} as {what}: leave it out."
            )


@dataclass(frozen=True)
class ReadLog:
    """One log as it is shown, its runs as dictionaries: their lines are no longer in memory."""

    name: str
    title: str
    recognition: Recognition | None
    damaged_lines: int
    runs: list[dict[str, Any]]
    digests: list[bytes | None]


class Figures:
    """Figures of runs, each worked out once: thousands of copies of a run need one."""

    def __init__(self) -> None:
        self._known: dict[tuple[bytes, LogFacts], LoggedFigure] = {}

    def of(self, columns: Mapping[str, Floats], facts: LogFacts) -> LoggedFigure:
        key = columns_digest(columns, sorted(columns)), facts
        if key not in self._known:
            if len(self._known) >= MOST_FIGURES:
                self._known.clear()
            self._known[key] = logged_figure(columns, facts)
        return self._known[key]


def shown(log: OpenLog, given: Given, figures: Figures) -> ReadLog:
    """Work out the figures of a log, run by run."""
    runs, digests = [], []
    damaged = 0
    for run in log.runs:
        columns = run.columns()
        facts = given.complete(LogFacts(**run.facts()), run.source)
        runs.append(_as_dict(run, figures.of(columns, facts)))
        digests.append(times_digest(columns))
        damaged += run.damaged_lines
    damaged += log.cleaning.damaged_lines
    return ReadLog(log.name, log.format.title, log.recognition, damaged, runs, digests)


def mark_copies(logs: Sequence[ReadLog]) -> list[str]:
    """Add the doubt to each run that is a copy; return a sentence for each group of them."""
    runs = [(log, number) for log in logs for number in range(len(log.runs))]
    groups = find_copies([log.digests[number] for log, number in runs])
    sentences = {}
    for index, group in groups.items():
        first, number = runs[group.first]
        copied = new_doubt(DoubtCode.COPIED_LOGS, runs=f"{group.count:,}", number=number + 1, log=first.name)
        log, own = runs[index]
        log.runs[own]["doubts"].append(_doubt(copied))
        sentences[group.first] = copied.message
    return list(sentences.values())


def _as_dict(run: LoggedRun, figure: LoggedFigure) -> dict[str, Any]:
    """One run for scripts; what a log does not say is None."""
    interval = figure.interval
    batch = figure.batch_per_device
    return {
        "source": run.source,
        "format": run.format.name,
        "framework": run.settings.get("framework") or run.format.framework,
        "steps": figure.steps,
        "world_size": figure.world_size,
        "batch_per_device": int(batch) if batch is not None and batch == int(batch) else batch,
        "precision": run.settings.get("precision"),
        "throughput": {
            "value": figure.throughput,
            "low": interval.low if interval else None,
            "high": interval.high if interval else None,
            "unit": rate_unit(figure.unit),
            "scope": "global",
        },
        "steps_per_second": figure.steps_per_second,
        "final_loss": figure.final_loss,
        "top1": run.top1,
        "doubts": [_doubt(doubt) for doubt in figure.doubts],
    }


def _doubt(doubt: Doubt) -> dict[str, str]:
    return {"code": doubt.code.value, "severity": doubt.severity.value, "message": doubt.message}


def lines(logs: Sequence[ReadLog], copied: Sequence[str]) -> Iterator[str]:
    """A table of the runs, what the formats were told by, and the doubts in words."""
    common = _common_folder([log.name for log in logs])
    runs = [run for log in logs for run in log.runs]
    yield from Table(HEADER, [_cells(run, common) for run in runs], RIGHT_ALIGNED).lines(terminal_width())
    yield ""
    if common:
        yield one_line(f"below {common}")
    for log in logs:
        yield one_line(_recognised(log, common))
    for run in runs:
        for doubt in run["doubts"]:
            if doubt["code"] != DoubtCode.COPIED_LOGS.value:
                yield one_line(f"{run['source'].removeprefix(common)}: {doubt['code']}: {doubt['message']}")
    for sentence in copied:
        yield one_line(f"{DoubtCode.COPIED_LOGS.value}: {sentence}")


def _common_folder(names: Sequence[str]) -> str:
    """What the names of several logs begin with, up to a folder; it would fill half of the table."""
    try:
        folder = os.path.commonpath(names) + "/"
    except ValueError:  # whole paths beside relative ones
        return ""
    return folder if all(name.startswith(folder) for name in names) else ""


def _cells(run: dict[str, Any], common: str) -> list[str]:
    throughput = run["throughput"]
    return [
        run["source"].removeprefix(common),
        run["format"],
        _or_missing(run["world_size"]),
        _or_missing(run["precision"]),
        _or_missing(run["batch_per_device"]),
        f"{run['steps']:,}",
        _speed(run),
        number.bounds(throughput["low"], throughput["high"]),
        ", ".join(doubt["code"] for doubt in run["doubts"]),
    ]


def _speed(run: dict[str, Any]) -> str:
    """Samples a second, or steps a second where the log tells no more."""
    if (value := run["throughput"]["value"]) is not None:
        return f"{number.throughput(value)} {run['throughput']['unit']}"
    pace = run["steps_per_second"]
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
