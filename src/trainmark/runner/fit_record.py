"""What was tried on this machine, one file for each framework: a search goes on where another ended."""

from __future__ import annotations

import datetime
import json
import os
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from trainmark.environments.place import home
from trainmark.measure.fit import Try
from trainmark.runner.fit_try import Setting


@dataclass(frozen=True)
class Remembered:
    """The tries of one setting, and when the last of them was made."""

    setting: Setting
    tries: tuple[Try, ...]
    measured: str


def keep(setting: Setting, tries: Sequence[Try]) -> Remembered:
    """In place of what was kept of the same setting, also with an earlier text of the program."""
    now = datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds")
    kept = Remembered(setting, tuple(tries), now)
    _write(setting.framework, [*_others(setting), kept])
    return kept


def forget(setting: Setting) -> None:
    _write(setting.framework, list(_others(setting)))


def find(setting: Setting) -> Remembered | None:
    return next((kept for kept in _kept(setting.framework) if kept.setting == setting), None)


def _others(setting: Setting) -> Iterator[Remembered]:
    return (kept for kept in _kept(setting.framework) if replace(kept.setting, code=setting.code) != setting)


def _kept(framework: str) -> Iterator[Remembered]:
    """A file that cannot be read is as none: the search begins anew."""
    try:
        for each in json.loads(_file(framework).read_bytes()):
            yield _from_dict(each)
    except (OSError, ValueError, KeyError, TypeError):
        return


def _from_dict(kept: dict[str, Any]) -> Remembered:
    tries = tuple(Try(**each) for each in kept["tries"])
    return Remembered(Setting(**kept["setting"]), tries, kept["measured"])


def _write(framework: str, all_kept: Sequence[Remembered]) -> None:
    path = _file(framework)
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_suffix(f".{os.getpid()}.part")
    part.write_text(json.dumps([asdict(kept) for kept in all_kept], indent=1), encoding="utf-8")
    part.replace(path)


def _file(framework: str) -> Path:
    return home() / "fit" / f"{framework}.json"
