"""What was tried on this machine, one file for each framework: a search goes on where another ended."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from trainmark.measure.fit import FitAttempt
from trainmark.runner.fit.attempt import FitCase
from trainmark.store.files import LocalRecords


@dataclass(frozen=True)
class FitSearch:
    """The tries of one setting, and when the last of them was made."""

    setting: FitCase
    tries: tuple[FitAttempt, ...]
    measured: str


SEARCHES = LocalRecords("fit", FitSearch)


def keep(setting: FitCase, tries: Sequence[FitAttempt]) -> FitSearch:
    """Write the tries in place of those of the same setting, also with an earlier text of the program."""
    now = datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds")
    search = FitSearch(setting, tuple(tries), now)
    SEARCHES.replace(setting.framework, _of(setting), search)
    return search


def forget(setting: FitCase) -> None:
    SEARCHES.replace(setting.framework, _of(setting))


def find(setting: FitCase) -> FitSearch | None:
    searches = SEARCHES.read(setting.framework)
    return next((search for search in searches if search.setting == setting), None)


def _of(setting: FitCase) -> Callable[[FitSearch], bool]:
    return lambda search: replace(search.setting, code=setting.code) == setting
