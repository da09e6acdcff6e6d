"""The verdicts that were reached on this machine, one file for each framework."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

from trainmark.conform.verdict import Verdict, code_digest, from_dict
from trainmark.environments.place import home


def keep(verdict: Verdict) -> Path:
    """In place of an earlier one of the same framework, version, interpreter and device."""
    others = [kept for kept in _kept(verdict.framework) if _same(kept) != _same(verdict)]
    path = _file(verdict.framework)
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_suffix(f".{os.getpid()}.part")
    part.write_text(json.dumps([v.to_dict() for v in (*others, verdict)], indent=1), encoding="utf-8")
    part.replace(path)
    return path


def find(
    framework: str, version: str | None, python: str, device: str, code: str | None = None
) -> Verdict | None:
    """The verdict on this code, on today's where none is named; None where it has not been checked."""
    wanted = (version, python, device)
    found = [kept for kept in _kept(framework) if _same(kept) == wanted]
    return next((kept for kept in found if kept.code == (code or code_digest(framework))), None)


def _same(verdict: Verdict) -> tuple[str | None, str, str]:
    return verdict.version, verdict.python, verdict.device


def _kept(framework: str) -> Iterator[Verdict]:
    """A file that cannot be read is as none: the check is made again."""
    try:
        for kept in json.loads(_file(framework).read_bytes()):
            yield from_dict(kept)
    except (OSError, ValueError, KeyError, TypeError):
        return


def _file(framework: str) -> Path:
    return home() / "conformance" / f"{framework}.json"
