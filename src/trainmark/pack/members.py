"""Names of the files that are packed of a run; no other member is accepted when one is unpacked."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from trainmark.natural import natural_key

OF_RUN = (
    "run.json",
    "suite.yaml",
    "environment.json",
    "facts.json",
    "cluster.json",
    "nodes.json",
    "fabric.json",
    "light.json",
    "ended.json",
)
# A finished trial `01`, or an attempt set aside as `01.crashed-1`.
TRIAL = re.compile(
    r"trials/(?P<case>[^./\\\x00-\x1f\x7f][^/\\\x00-\x1f\x7f]{0,139})/"
    r"(?P<trial>[0-9]{2,9}(?:\.[a-z]{1,20}-[0-9]{1,6})?)/"
    r"(?P<file>trial\.json|figure\.json|environment\.json|samples\.jsonl"
    r"|events/rank[0-9]{1,9}\.jsonl|logs/rank[0-9]{1,9}\.log)"
)
# The code that ran, profiles and scripts; reports are made again from the rest.
LEFT_OUT = ("code", "explain", "scripts")


def is_member(name: str) -> bool:
    return name in OF_RUN or TRIAL.fullmatch(name) is not None


def members_of(run: Path) -> dict[str, Path]:
    """Return the files to pack by their names in the archive, in the order in which they are packed."""
    names = [name for name in _names(run) if is_member(name)]
    return {name: run / name for name in sorted(names, key=_order)}


def left_out(run: Path) -> tuple[str, ...]:
    """Return what the run has of the folders of which nothing is packed."""
    return tuple(name for name in LEFT_OUT if (run / name).is_dir())


def trial_of(name: str) -> str | None:
    """Return `CASE/01` for a member of a finished trial or of an attempt; None for one of the run."""
    match = TRIAL.fullmatch(name)
    return f"{match['case']}/{match['trial']}" if match else None


def _names(run: Path) -> Iterator[str]:
    for path in (*run.glob("*"), *(run / "trials").rglob("*")):
        # A link may lead out of the folder.
        if path.is_file() and not path.is_symlink():
            yield path.relative_to(run).as_posix()


def _order(name: str) -> tuple[bool, object]:
    return name not in OF_RUN, natural_key(name)
