"""The readers by name, and the one that takes what there is: probe, hooks, a log format, a pattern.

A reader is a file in this folder with a `read`, or any log format.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from trainmark.base.files import open_regular
from trainmark.events import Event
from trainmark.logs.format_file import our_format
from trainmark.logs.recognition import UnrecognizedError, format_names, recognize
from trainmark.logs.trials import observed, pattern, probe
from trainmark.logs.trials.output import Output, ReaderError

FOLDER = Path(__file__).parent
SHARED = {"__init__", "observed", "observed_steps", "output"}
BLOCK_BYTES = 1 << 20
SAY_PATTERN = "say --pattern with a regular expression that matches the line of a step."
KEEP_PYTHONPATH = (
    "where the command sets PYTHONPATH, let it keep what is there (PYTHONPATH=src:$PYTHONPATH); `python -I`, "
    f"`python -E` and `env -i` take it away. For any other program, {SAY_PATTERN}"
)
NOTHING_SEEN = (
    "no step was seen: the program calls no probe, no PyTorch optimizer, Keras fit or JAX gradient ran, and "
    f"its log is in no known format; {SAY_PATTERN}"
)
# Marks of the hooks, and what it means where one is missing.
MISSING_MARKS = {
    "hooks-started": "no step was seen, since Trainmark's hooks did not start in any Python: "
    + KEEP_PYTHONPATH,
    "hooks-imported": "no step was seen: Trainmark's hooks started, but only in Python that imported neither "
    "PyTorch nor Keras nor JAX. If that of the training is another, it was started without them: "
    + KEEP_PYTHONPATH,
}


def reader_names() -> tuple[str, ...]:
    files = {path.stem for path in FOLDER.glob("*.py")} - SHARED
    return (*sorted(files), *format_names())


def reader(name: str) -> Callable[[Output], Iterator[Event]]:
    if name in format_names():
        return partial(pattern.read_format, our_format(name))
    read: Callable[[Output], Iterator[Event]] = importlib.import_module(f"trainmark.logs.trials.{name}").read
    return read


def read(output: Output) -> Iterator[Event]:
    if output.pattern is not None:
        return pattern.read(output)
    if any((output.folder / "events").glob("rank*.jsonl")):
        return probe.read(output)
    if observed.streams(output.folder):
        return observed.read(output)
    return _logged(output)


def _logged(output: Output) -> Iterator[Event]:
    try:
        recognition, _ = recognize(_blocks(pattern.log_of(output, 0)), "rank0.log")
        return pattern.read_format(recognition.format, output)
    except (UnrecognizedError, OSError) as error:
        events = output.folder / "events"
        reasons = (why for mark, why in MISSING_MARKS.items() if not (events / mark).exists())
        raise ReaderError(next(reasons, NOTHING_SEEN)) from error


def _blocks(path: Path) -> Iterator[bytes]:
    with open_regular(path) as file:
        while block := file.read(BLOCK_BYTES):
            yield block
