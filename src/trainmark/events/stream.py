"""Events as JSON lines: one object a line, `event` names its kind, absent fields are unknown.

Steps that follow one another are read as one block of columns: a run of thousands of ranks has millions of
them, and each costs.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import MISSING, dataclass, fields
from functools import cache
from operator import itemgetter
from pathlib import Path
from reprlib import repr as short
from typing import Any

from trainmark.base.files import open_regular, whole_file
from trainmark.events import ranges
from trainmark.events.ranges import FIELDS, Range, impossible_fact
from trainmark.events.schema import DeviceSample, Event, Mark, RunEnd, RunStart, Scope, Step

REQUIRED_STEP_FIELDS = frozenset({"rank", "step"})
# What a line may leave out.
OPTIONAL_STEP_FIELDS = tuple(field.name for field in fields(Step) if field.name not in REQUIRED_STEP_FIELDS)


@dataclass(frozen=True)
class StepBlock:
    """Consecutive steps of one rank; a column is None where no step tells it, an entry where one does not."""

    rank: int
    steps: Sequence[int]
    columns: dict[str, Sequence[Any] | None]


def step_block(rows: Sequence[dict[str, Any]]) -> StepBlock | None:
    """Check and gather the step events in `rows`; None where a number cannot be true or ranks are mixed.

    The caller then decodes them one by one, which finds the place and the reason.
    """
    gathered = _columns(rows)
    ranks, steps = gathered["rank"], gathered["step"]
    if not (_all_in_range(ranks, "rank") and _all_in_range(steps, "step") and min(ranks) == max(ranks)):
        return None
    columns: dict[str, Sequence[Any] | None] = {}
    for name in OPTIONAL_STEP_FIELDS:
        column = gathered.get(name, ())
        known_values = [value for value in column if value is not None] if None in column else column
        if known_values and not _all_in_range(known_values, name):
            return None
        columns[name] = column if known_values else None
    return StepBlock(ranks[0], steps, columns)


def _columns(rows: Sequence[dict[str, Any]]) -> dict[str, Sequence[Any]]:
    """The fields of all rows by name; quickly where all rows have the same ones, as a probe writes them."""
    names = tuple(rows[0])
    if REQUIRED_STEP_FIELDS.issubset(names) and set(map(len, rows)) == {len(names)}:
        with contextlib.suppress(KeyError):
            return dict(zip(names, zip(*map(itemgetter(*names), rows), strict=True), strict=True))
    return {name: [row.get(name) for row in rows] for name in (*REQUIRED_STEP_FIELDS, *OPTIONAL_STEP_FIELDS)}


def _all_in_range(values: Sequence[Any], name: str) -> bool:
    """Whether all of them are within the range of the field."""
    known = FIELDS[name]
    kinds = set(map(type, values))
    if not kinds.issubset(known.types):
        return False
    # What may be NaN has no bounds, unless it is an integer that no float can hold.
    return _within(values, known.low or 0, known.high) if known.finite or int in kinds else True


def _within(values: Sequence[float], low: float, high: float) -> bool:
    """NaN passes through `min` and `max`, but not through a sum."""
    return low <= min(values) and max(values) <= high and (total := sum(values)) == total


_KINDS: dict[str, type[RunStart | Step | DeviceSample | RunEnd]] = {
    "run_start": RunStart,
    "step": Step,
    "device_sample": DeviceSample,
    "run_end": RunEnd,
}
_NAMES = {kind: name for name, kind in _KINDS.items()}
# By the annotation of a field that is no number: what JSON must hold for it.
_TYPES: dict[str, tuple[type, ...]] = {
    "str": (str,),
    "Scope": (str,),
    "tuple[str, ...]": (list,),
    "dict[str, Any]": (dict,),
}
_CHECKS: dict[Any, dict[str, Range]] = {
    kind: {f.name: ranges.FIELDS.get(f.name) or Range(_TYPES[str(f.type)]) for f in fields(kind)}
    for kind in (*_KINDS.values(), Mark)
}
# Values of the fields that a line may leave out; `decode` copies them, which is far cheaper than `__init__`.
_DEFAULTS: dict[Any, dict[str, Any]] = {
    kind: {
        f.name: None if f.default is MISSING else f.default
        for f in fields(kind)
        if f.default is not MISSING or (str(f.type).endswith("| None"))
    }
    for kind in _CHECKS
}
MARKS = frozenset({"epoch", "eval", "checkpoint", "note"})
_BY_NAME: dict[str, Any] = {**_KINDS, **dict.fromkeys(MARKS, Mark)}
_SCOPES = frozenset(scope.value for scope in Scope)
NO_EVENTS = "the program emitted no events; call trainmark.probe in it, or name another reader."
BLOCK_BYTES = 1 << 18
# Facts may be long; a line beyond this is no event.
LONGEST_LINE = 4 << 20


class StreamError(ValueError):
    """A line that is not an event; the message says which line and why."""


def encode(event: Event) -> str:
    """One event as one line of JSON, without the newline."""
    name = event.kind if isinstance(event, Mark) else _NAMES[type(event)]
    known = {
        f.name: getattr(event, f.name)
        for f in fields(event)
        if f.name != "kind" and getattr(event, f.name) is not None
    }
    return json.dumps({"event": name, **known}, separators=(",", ":"))


def decode(line: str | bytes) -> Event:
    """Return the event on one line; StreamError where the line is not one."""
    try:
        parsed = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise StreamError(f"not JSON: {line[:80]!r}") from error
    return from_object(parsed)


def from_object(parsed: Any) -> Event:
    """Check every value against its type and range; StreamError where one cannot be true."""
    if type(parsed) is not dict or "event" not in parsed:
        raise StreamError(f"no event on this line: {short(parsed)}")
    name = parsed["event"]
    kind = _BY_NAME.get(name) if type(name) is str else None
    if kind is None:
        raise StreamError(f"unknown event {short(name)}")
    checks = _CHECKS[kind]
    values = dict(_DEFAULTS[kind])
    for field, value in parsed.items():
        # A newer writer may say more than this reader knows; what it adds is not an error.
        check = checks.get(field)
        if check is None or value is None:
            continue
        # As `Range.holds`, written out: this runs once for every number of every step.
        types, low, high, finite = check
        known = type(value) in types
        if known and (low is None or low <= value <= high or (not finite and check.holds(value))):
            values[field] = value
        elif not (
            known and kind is DeviceSample and field in values
        ):  # a reading that a driver got wrong is none
            raise StreamError(f"'{field}' of this {name} event cannot be {short(value)}")
    return _built(kind, name, values)


def _built(kind: Any, name: str, values: dict[str, Any]) -> Event:
    if kind is Mark:
        values["kind"] = name
    if kind is not Step:
        if missing := sorted(_CHECKS[kind].keys() - values.keys() - {"facts"}):
            raise StreamError(f"incomplete {name} event: no '{missing[0]}'")
        _convert(kind, name, values)
    elif "rank" not in values or "step" not in values:
        raise StreamError(f"incomplete step event: no '{'step' if 'rank' in values else 'rank'}'")
    event: Event = object.__new__(kind)
    event.__dict__.update(values)
    return event


def _convert(kind: Any, name: str, values: dict[str, Any]) -> None:
    """Turn what JSON holds into what the fields take."""
    if kind is DeviceSample:
        values["throttle"] = tuple(map(str, values["throttle"]))
        return
    facts = values["facts"] = upgraded_facts(name, values.get("facts", {}))
    if (fact := impossible_fact(facts)) is not None:
        raise StreamError(f"the fact '{fact}' of this {name} event cannot be {short(facts[fact])}")
    if kind is RunStart and type(values["scope"]) is str:
        if values["scope"] not in _SCOPES:
            raise StreamError(f"'scope' of this run_start event cannot be {short(values['scope'])}")
        values["scope"] = Scope(values["scope"])


def read(path: Path) -> Iterator[Event]:
    """Yield the events of a regular file, in bounded memory; StreamError names the first line that is none.

    A last line without its end is left out: its writer was killed.
    """
    for first, rows, torn in _parsed_blocks(path):
        yield from _events(rows, first, path.name, torn)


def read_ranks(folder: Path) -> Iterator[Event | StepBlock]:
    """Yield the events of all ranks, `rank0.jsonl` and so on, steps in blocks; StreamError if there is none.

    Each file must hold one rank's, so that what is kept of a stream cannot outgrow it.
    """
    files = sorted(folder.glob("rank*.jsonl"))
    if not files:
        raise StreamError(NO_EVENTS)
    for file in files:
        rank = file.name.removeprefix("rank").removesuffix(".jsonl")
        own = int(rank) if rank.isdecimal() and len(rank) < 10 else None
        for event in _read_in_blocks(file):
            if not isinstance(event, DeviceSample) and event.rank != own:
                raise StreamError(f"{file.name} holds an event of rank {event.rank}")
            yield event


def _read_in_blocks(path: Path) -> Iterator[Event | StepBlock]:
    """Like `read`, with steps that follow one another as one block."""
    for first, rows, torn in _parsed_blocks(path):
        for part in _runs_of_steps(rows):
            steps = step_block(rows[part]) if part.stop - part.start > 1 else None
            yield from _events(rows[part], first + part.start, path.name, torn) if steps is None else (steps,)


def _parsed_blocks(path: Path) -> Iterator[tuple[int, list[Any], int | None]]:
    """Yield the number of the first line, lines parsed where all can be, and the number of a torn one."""
    first = 1
    for block in line_blocks(path):
        lines = block.splitlines(keepends=True)
        yield first, _parsed(lines) or list(lines), None if block.endswith(b"\n") else first + len(lines) - 1
        first += len(lines)


def line_blocks(path: Path) -> Iterator[bytes]:
    """Yield a regular file in blocks of whole lines, of about BLOCK_BYTES; the last may lack its newline."""
    rest = b""
    try:
        with open_regular(path) as file:
            while block := file.read(BLOCK_BYTES):
                end = block.rfind(b"\n") + 1
                if end:
                    yield rest + block[:end]
                    rest = block[end:]
                else:
                    rest += block
                if len(rest) > LONGEST_LINE:
                    raise StreamError(f"{path.name}: a line is longer than {LONGEST_LINE >> 20} MiB")
    except OSError as error:
        raise StreamError(f"{path.name} cannot be read: {error.strerror}") from error
    if rest:
        yield rest


def _runs_of_steps(rows: list[Any]) -> Iterator[slice]:
    """Parts of `rows`, in order: steps that follow one another, and everything else by itself."""
    others = [n for n, row in enumerate(rows) if type(row) is not dict or row.get("event") != "step"]
    begin = 0
    for other in (*others, len(rows)):
        if other > begin:
            yield slice(begin, other)
        if other < len(rows):
            yield slice(other, other + 1)
        begin = other + 1


def _events(rows: list[Any], first: int, name: str, torn: int | None) -> Iterator[Event]:
    """Decode lines or what was parsed of them; `torn` is the number of a line without its end."""
    for number, row in enumerate(rows, first):
        try:
            yield decode(row) if type(row) is bytes else from_object(row)
        except StreamError as error:
            if number == torn:
                return
            raise StreamError(f"{name}:{number}: {error}") from error


def _parsed(lines: list[bytes]) -> list[Any] | None:
    """Many lines as one JSON array, which takes half the time; None where one of them is no JSON."""
    try:
        parsed: list[Any] = json.loads(b"[%s]" % b",".join(lines))
    except (ValueError, RecursionError):
        return None
    return parsed if len(parsed) == len(lines) else None


def write(path: Path, events: Iterable[Event]) -> None:
    """Put a file of these events in the place of whatever is there, which may be a program's FIFO."""
    with whole_file(path, durable=False) as file:
        file.writelines(f"{encode(event)}\n".encode() for event in events)


OLD_NAMES = Path(__file__).with_name("version_0_1.json")


def upgraded_facts(event: str, facts: dict[str, Any]) -> dict[str, Any]:
    """Rename the facts of a `run_start` or `eval` event; a training by epochs gets its metrics."""
    if event == "run_start" and "epochs" in facts and "metrics" not in facts:
        return {**_renamed(event, facts), "metrics": _old()["metrics"]}
    return _renamed(event, facts) if event == "eval" else facts


def upgraded_finish(finish: dict[str, Any]) -> dict[str, Any]:
    """Rename what the finish of a stored figure holds, its epochs and its evaluations."""
    if "metrics" in finish:
        return finish
    metrics = [{"name": name, **properties} for name, properties in _old()["metrics"].items()]
    renamed = {**_renamed("finish", finish), "metrics": metrics}
    for part in ("epochs", "evaluations"):
        if isinstance(items := renamed.get(part), list):
            renamed[part] = [_renamed("epoch", item) if isinstance(item, dict) else item for item in items]
    return renamed


def _renamed(event: str, plain: dict[str, Any]) -> dict[str, Any]:
    names = _old()[event]
    return {names.get(name, name): value for name, value in plain.items()}


@cache
def _old() -> dict[str, dict[str, Any]]:
    read: dict[str, dict[str, Any]] = json.loads(OLD_NAMES.read_bytes())
    return read
