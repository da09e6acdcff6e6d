"""How a command ends, with the next step, or with a report of our own mistake."""

from __future__ import annotations

import contextlib
import os
import shlex
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import click

from trainmark import __version__
from trainmark.base.text import one_line, visible

INTERNAL_ERROR = 70  # EX_SOFTWARE of sysexits.h
MOST_CRASH_FILES = 20
LONGEST_MESSAGE = 300
LONGEST_TRACE = 200_000
SHORTEST_SECRET = 6  # a shorter value is part of too many words


def report_crash(error: BaseException, where: str = "") -> int:
    """Keep the trace of an unexpected error in a file, say so in one sentence, and return the exit code."""
    try:
        from trainmark.base.secrets import scrub_text

        text = _without_own_secrets(_report(error))
        path = _keep(text)
        message = one_line(_without_own_secrets(scrub_text(str(error))))[:LONGEST_MESSAGE]
        name = f"{type(error).__name__}: {message}" if message else type(error).__name__
        sentence = (
            f"the trace is in {path}, please report it with that file." if path else "no trace could be kept."
        )
        click.echo(f"trainmark: internal error{where} ({name}); {one_line(sentence)}", err=True)
        if os.environ.get("TRAINMARK_DEBUG") == "1":
            click.echo(visible(text), err=True)
    except Exception:  # noqa: BLE001 - memory or the terminal is gone; the exit code still tells
        with contextlib.suppress(Exception):
            os.write(2, b"trainmark: internal error; no trace could be kept.\n")
    return INTERNAL_ERROR


@contextlib.contextmanager
def quiet_threads() -> Iterator[None]:
    """Report what ends a thread as a crash is reported, while the command runs."""

    def hook(ended: threading.ExceptHookArgs) -> None:
        if ended.exc_value is not None and not isinstance(ended.exc_value, SystemExit):
            report_crash(ended.exc_value, f" in thread {ended.thread.name}" if ended.thread else "")

    before, threading.excepthook = threading.excepthook, hook
    try:
        yield
    finally:
        threading.excepthook = before


def masked_arguments(words: Sequence[str]) -> str:
    """Return a command line with the values of secret options and variables masked."""
    import shlex

    from trainmark.base.secrets import HIDDEN, is_secret, scrub_text

    shown, hide = [], False
    for word in words:
        name, equals, _ = word.partition("=")
        if hide and not word.startswith("-"):
            shown.append(HIDDEN)
        elif equals and is_secret(name):
            shown.append(f"{name}={HIDDEN}")
        else:
            shown.append(scrub_text(word))
        hide = word.startswith("-") and not equals and is_secret(word)
    return shlex.join(shown)


def _report(error: BaseException) -> str:
    import platform
    import traceback

    from trainmark.base.secrets import scrub_text

    trace = "".join(traceback.format_exception(error))
    if len(trace) > LONGEST_TRACE:
        trace = f"{trace[: LONGEST_TRACE // 2]}\n  …\n{trace[-LONGEST_TRACE // 2 :]}"
    facts = {
        "trainmark": __version__,
        "command": masked_arguments(sys.argv),
        "time": time.strftime("%Y-%m-%d %H:%M:%S %z"),
        "python": sys.version.replace("\n", " "),
        "platform": platform.platform(),
    }
    return "".join(f"{name}: {value}\n" for name, value in facts.items()) + "\n" + scrub_text(trace)


def _without_own_secrets(text: str) -> str:
    from trainmark.base.secrets import HIDDEN, secret_values

    for secret in secret_values(dict(os.environ)):
        if len(secret) >= SHORTEST_SECRET:
            text = text.replace(secret, HIDDEN)
    return text


def _keep(text: str) -> Path | None:
    """Write a new file, in the folder for crashes or where that cannot be among temporary files."""
    import tempfile

    data = text.encode("utf-8", "backslashreplace")
    with contextlib.suppress(OSError, RuntimeError):
        folder = crash_folder()
        folder.mkdir(parents=True, exist_ok=True)
        path = _write_new(folder, data)
        _prune(folder)
        return path
    with contextlib.suppress(OSError):
        number, name = tempfile.mkstemp(prefix="trainmark-crash-", suffix=".txt")
        with os.fdopen(number, "wb") as file:
            file.write(data)
        return Path(name)
    return None


def crash_folder() -> Path:
    """Return `$TRAINMARK_HOME/crashes`, or its place by the XDG rules for a program's state."""
    if named := os.environ.get("TRAINMARK_HOME"):
        return Path(named).absolute() / "crashes"
    state = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    return Path(state) / "trainmark" / "crashes"


def _write_new(folder: Path, data: bytes) -> Path:
    stem = f"crash-{time.strftime('%Y%m%d-%H%M%S')}-{os.getpid()}"
    for number in range(1, 1000):
        path = folder / (f"{stem}.txt" if number == 1 else f"{stem}-{number}.txt")
        with contextlib.suppress(FileExistsError):
            with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
                file.write(data)
            return path
    raise FileExistsError(str(folder))


def _prune(folder: Path) -> None:
    """Keep the newest files only."""
    with contextlib.suppress(OSError):
        files = sorted(folder.glob("crash-*.txt"), key=lambda path: path.stat().st_mtime_ns)
        for path in files[:-MOST_CRASH_FILES]:
            path.unlink()


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

        from trainmark.cli.terminal import console

        console(stderr=True).print(Text(next_step(command, **values), style="dim"), soft_wrap=True)
