"""The figures in other programs' logs, as a list, a data frame and a page."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from trainmark.api.shown import Shown, Tabular
from trainmark.base.errors import UserError
from trainmark.base.text import visible
from trainmark.logs.read import GivenFacts, LogReading, as_record, read_logs
from trainmark.logs.recognition import named_format
from trainmark.pages.logs import logs_page
from trainmark.view.blocks import Page


@dataclass(frozen=True)
class Logs(LogReading, Shown, Tabular):
    """The logs under some paths, each run in them with its figure, and those that were not read."""

    def page(self) -> Page:
        return logs_page(self)

    def rows(self) -> list[dict[str, Any]]:
        """Return each run of each log, with its throughput as value, low, high and unit."""
        records = [as_record(run) for run in self.runs]
        return [{**record, **record.pop("throughput")} for record in records]

    def to_dict(self) -> dict[str, Any]:
        return {"runs": [as_record(run) for run in self.runs]}


def read(
    *paths: str | Path,
    format: str | None = None,
    batch: float | None = None,
    devices: int | None = None,
    samples_per_step: float | None = None,
) -> Logs:
    """Read logs: files, folders, globs, archives. The format is recognised where none is named.

    `batch` on one device, `devices` and `samples_per_step` complete what the logs do not say. What could not
    be read is among the `refusals`; of a single log it is raised.
    """
    if not paths:
        raise UserError("name what to read: files, folders, globs or archives.")
    known = named_format(format) if format else None
    reading = read_logs([str(path) for path in paths], known, GivenFacts(batch, devices, samples_per_step))
    if not reading.logs and len(reading.refusals) == 1:
        raise UserError(visible(reading.refusals[0].sentence))
    return Logs(reading.logs, reading.refusals, reading.copies)
