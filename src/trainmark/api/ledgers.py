"""What others published, as a list, a data frame and a page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from trainmark.api.shown import Shown, Tabular
from trainmark.logs.ledger import LedgerEntry, find, load
from trainmark.logs.ledger.entry import as_record
from trainmark.pages.ledger import ledger_page
from trainmark.view.blocks import Page


@dataclass(frozen=True)
class Ledger(Shown, Tabular):
    """Published results, each with its source and what is known to be wrong with it."""

    entries: tuple[LedgerEntry, ...]

    def __len__(self) -> int:
        return len(self.entries)

    def page(self) -> Page:
        return ledger_page(self.entries)

    def rows(self) -> list[dict[str, Any]]:
        return [as_record(entry) for entry in self.entries]

    def to_dict(self) -> dict[str, Any]:
        return {"entries": self.rows()}


def ledger(
    *,
    workload: str | None = None,
    size: str | None = None,
    length: str | int | None = None,
    unit: str | None = None,
    model: str | None = None,
    framework: str | None = None,
    device: str | None = None,
    precision: str | None = None,
    topology: str | None = None,
    year: str | int | None = None,
    source: str | None = None,
    also: Sequence[str | Path] = (),
) -> Ledger:
    """Return the published results that are all of this: a device `h100`, a year `2024` or `2021-2023`.

    `model` is a part of a workload's name; `also` are files of results that are read too.
    """
    wanted = {
        **{"workload": workload, "size": size, "length": length, "unit": unit, "model": model},
        **{"framework": framework, "device": device, "precision": precision, "topology": topology},
        **{"year": year, "source": source},
    }
    texts = {name: str(value) for name, value in wanted.items() if value is not None}
    return Ledger(tuple(find(load(*map(Path, also)), **texts)))
