"""MLPerf's records, and the runs that a file of them holds."""

import json
import re
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple, TypeGuard

LINE = re.compile(rb":::MLLOG +(\{[^\n]*)")
OPENING = frozenset({"submission_benchmark", "cache_clear", "init_start", "run_start"})
PROGRESS = frozenset({"epoch_stop", "block_stop", "eval_accuracy", "run_stop"})
# No count or time of a run comes near it; JSON allows numbers that would not fit a double.
LARGEST = 1e15


class Record(NamedTuple):
    """One `:::MLLOG` line; the event type is not looked at, since it is missing or wrong in many logs."""

    key: str
    value: Any
    ms: float
    metadata: dict[str, Any]

    def number(self, name: str) -> float | None:
        """A number of the metadata, None where there is none of this name."""
        value = self.metadata.get(name)
        return float(value) if is_number(value) else None


def is_number(value: Any) -> TypeGuard[int | float]:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) < LARGEST


def records(block: bytes) -> Iterator[Record]:
    """Every whole record of a block; what is none, or a broken one, is left out."""
    decoder = json.JSONDecoder()
    for line in LINE.findall(block):
        try:
            fields, _ = decoder.raw_decode(line.decode("utf-8", "replace"))
        except (ValueError, RecursionError):
            continue
        key, ms, metadata = fields.get("key"), fields.get("time_ms"), fields.get("metadata")
        if isinstance(key, str) and is_number(ms):
            yield Record(key, fields.get("value"), float(ms), metadata if isinstance(metadata, dict) else {})


def runs(blocks: Iterable[bytes]) -> Iterator[list[Record]]:
    """The records run by run; a run begins where another `run_start` comes after progress was made.

    Records that come late, such as a submission's name after `run_stop`, belong to the run before them.
    """
    run: list[Record] = []
    started = progressed = False
    for block in blocks:
        for record in records(block):
            if record.key == "run_start":
                if started and progressed:
                    cut = _opening(run)
                    yield run[:cut]
                    run, progressed = run[cut:], False
                started = True
            progressed = progressed or (started and record.key in PROGRESS)
            run.append(record)
    if run:
        yield run


def _opening(run: list[Record]) -> int:
    """Where the records of the run that now starts begin: the first opening one after the last progress."""
    last = max(index for index, record in enumerate(run) if record.key in PROGRESS)
    return next((i for i in range(last + 1, len(run)) if run[i].key in OPENING), len(run))
