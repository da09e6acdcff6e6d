"""Whatever tells the steps of an untouched program: the probe, the hooks, a log format, or a pattern."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from trainmark.base.files import open_regular
from trainmark.events import Event
from trainmark.logs.recognition import UnrecognizedError, recognize
from trainmark.logs.trials import observed, pattern, probe
from trainmark.logs.trials.output import Output, ReaderError

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
