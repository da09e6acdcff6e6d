"""Runs: made from a program or a suite, opened by name, and all that they measured."""

from __future__ import annotations

import contextlib
import shlex
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

from trainmark.api.shown import Shown, Tabular
from trainmark.base.errors import UserError
from trainmark.measure.cost import Price, parse_price
from trainmark.measure.figure import Result
from trainmark.pages.run.page import run_page
from trainmark.pages.run.record import run_record
from trainmark.runner.prepare import Prepared, prepare, prepare_text
from trainmark.runner.progress import NoDisplay, RunDisplay
from trainmark.runner.run import execute, new_run, save_reference_rates
from trainmark.runner.session import RunEnding
from trainmark.store.overview import trial_rows
from trainmark.store.report import RunReport, report_of
from trainmark.store.run import RunFolder, find_run
from trainmark.store.trial import TrialRecord
from trainmark.suite.load import Override
from trainmark.suite.program import (
    FEWEST_REPEATS,
    name_of,
    program_suite,
    python_beside,
    require_script,
    variants,
    variants_suite,
)
from trainmark.view.blocks import Page


@dataclass(frozen=True)
class Trials(Tabular):
    """The finished trials of a run."""

    folder: RunFolder
    records: tuple[TrialRecord, ...]

    def rows(self) -> list[dict[str, Any]]:
        return trial_rows(self.folder, self.records)


@dataclass(frozen=True)
class Run(Shown):
    """A run in its folder; what it measured is read when it is asked for."""

    folder: RunFolder
    price: Price | None = None

    @property
    def name(self) -> str:
        return self.folder.path.name

    @property
    def path(self) -> Path:
        return self.folder.path

    @cached_property
    def report(self) -> RunReport:
        return report_of(self.folder, self.price)

    @property
    def results(self) -> tuple[Result, ...]:
        """One result a case, each with its interval and its doubts."""
        return self.report.results

    @property
    def trials(self) -> Trials:
        return Trials(self.folder, tuple(self.folder.records()))

    def page(self) -> Page:
        return run_page(self.report)

    def to_dict(self) -> dict[str, Any]:
        return run_record(self.report)


def open(run: str | Path = "latest", runs: str | Path = "runs", price: str | Price | None = None) -> Run:
    """Return a run by its path, by its name below `runs`, or the latest.

    `price` is what a device costs in an hour, as in `2.50/h`.
    """
    return Run(find_run(str(run), Path(runs)), priced(price))


def priced(price: str | Price | None) -> Price | None:
    try:
        return parse_price(price) if isinstance(price, str) else price
    except ValueError as error:
        raise UserError(f"price: {error}.") from error


def run(
    program: str | Path | Sequence[str],
    *,
    steps: int | Literal["auto", "all"] = "auto",
    warmup: int | None = None,
    samples_per_step: float | None = None,
    unit: str | None = None,
    pattern: str | None = None,
    against: Sequence[str] = (),
    vary: Mapping[str, Sequence[object]] | None = None,
    repeats: int | None = None,
    fields: Mapping[str, object] | None = None,
    name: str | None = None,
    runs: str | Path = "runs",
    progress: bool = True,
) -> Run:
    """Measure a program (`train.py`, or the words of a command line), or a suite by its name or file.

    `fields` override fields of the suite. With `against`, other command lines, or `vary`, values of options,
    they take turns with the program until each ratio is certain. Ctrl-C ends the run; what it measured stays.
    """
    about = {
        **{"steps": steps, "warmup": warmup, "samples_per_step": samples_per_step},
        **{"unit": unit, "pattern": pattern},
    }
    changes = [Override(f"{key}={value}", f"fields[{key!r}]") for key, value in (fields or {}).items()]
    line = _command_line(program)
    several = bool(against or vary)
    if repeats is not None:
        most = f"{{min: {min(FEWEST_REPEATS, repeats)}, max: {repeats}}}" if several else str(repeats)
        changes.append(Override(f"repeats={most}", f"repeats={repeats}"))
    if line is None:
        prepared = prepare(str(program), changes)
    else:
        values = [f"{option}={','.join(map(str, each))}" for option, each in (vary or {}).items()]
        lines = variants(line, against, values) if several else {"": line}
        for each in lines.values():
            require_script(each)
        text = variants_suite(lines, about) if several else program_suite(line, about)
        prepared = prepare_text(text, name_of(line), str(Path.cwd()), changes)
    with contextlib.closing(prepared):
        folder = new_run(prepared, Path(runs), name, f"trainmark.run({program!r})")
        carry_out(folder, prepared, _Notes() if progress else NoDisplay())
    return Run(folder)


def carry_out(
    folder: RunFolder,
    prepared: Prepared,
    display: RunDisplay,
    port: int | None = None,
    wait_quiet: float = 0.0,
) -> RunEnding:
    """Run what is not finished yet, and keep the reference rates that it gave."""
    ending = execute(folder, prepared, display, port, wait_quiet=wait_quiet)
    save_reference_rates(folder, display.note)
    return ending


def _command_line(program: str | Path | Sequence[str]) -> list[str] | None:
    """Return the words of a command line; None for a suite."""
    if not isinstance(program, (str, Path)):
        return list(program)
    if str(program).endswith(".py"):
        return [python_beside(), str(program)]
    return shlex.split(str(program)) if " " in str(program) else None


class _Notes(NoDisplay):
    """Says on standard error how each trial ended."""

    def note(self, text: str) -> None:
        print(text, file=sys.stderr)

    def trial_ended(self, trial: Any, record: TrialRecord) -> None:
        figure = record.figure
        rate = f"{figure.throughput:,.2f} {figure.unit}/s" if figure else record.detail
        self.note(f"{trial.id}  {record.outcome}  {rate}")
