"""The obvious next command, one dim line behind a result for a person at a terminal."""

from __future__ import annotations

import shlex
import sys

# By command, and by what came of it where that matters.
NEXT = {
    "run": "trainmark explain {run}   where the time of a step goes; trainmark report {run} --open",
    "run of several": "trainmark report {run} --open   the ratios drawn out, with the doubts",
    "list": "trainmark report {run} --open   the newest as a page; trainmark history   results over time",
    "history": "trainmark history --case PATTERN   each result of a case, with what differs",
    "compare": "trainmark watch {before} {after}   measures both again, in turns, until it is certain",
    "explain": 'trainmark run --against "COMMAND WITH THE CHANGE" -- COMMAND   whether a change pays',
    "explain a run": "trainmark explain {run} --verify   makes what changes it can, and measures them",
    "watch": "trainmark bisect   which commit, version or setting did it",
    "pack": "trainmark push {file} --to URL   to a server; others check it with trainmark verify",
    "verify": "trainmark verify {file} --unpack FOLDER   to report and compare it",
    "read": "trainmark audit {file}   whether it contradicts itself; trainmark ledger   what others found",
    "doctor": "trainmark run -- python train.py   or trainmark run quick",
    "fit": "trainmark run --batch {batch}   measures at the largest one",
    "conform": "trainmark run {family}-frameworks   how fast each of them trains it",
    "frameworks install": "trainmark conform {name}   proves that it trains the same model",
}


def next_step(command: str, **values: object) -> str:
    """Return the line for this command."""
    quoted = {name: shlex.quote(str(value)) for name, value in values.items()}
    return f"next: {NEXT[command].format(**quoted)}"


def tell_next(command: str, **values: object) -> None:
    """Say it on standard error where a person reads both; nothing in pipes and files."""
    if sys.stdout.isatty() and sys.stderr.isatty():
        from rich.text import Text

        from trainmark.cli.common.terminal import console

        console(stderr=True).print(Text(next_step(command, **values), style="dim"), soft_wrap=True)
