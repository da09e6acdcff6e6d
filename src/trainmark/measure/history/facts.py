"""What was recorded of a trial's machine, software and settings, and which of it changed with a level.

Changed facts stand in the order of how well they fit the change.

The fit of a fact is the share of the results before the change that have its most common value of that side,
times the same share after it, and zero where the two values are equal. So a fact that is constant before,
constant after and different has 1; one that changed a result too early or too late a little less; one that
differs in every result, as a commit may, next to nothing, and is listed with its values right before and
after the change. Both sides reach to the neighbouring changes. A quantity that was measured (a clock, a
temperature) is never constant: its two values are the medians, and a result counts for the nearer one where
the medians differ by at least 1 %. Where a fact was recorded on one side alone, only a variable or a package
can really have come or gone; any other fit is halved.
"""

from __future__ import annotations

import hashlib
import re
import shlex
import statistics
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import isfinite
from typing import Any

from trainmark.base.secrets import scrub_text
from trainmark.measure.history.series import MEASURED_FACTS, RunPoint

GIBIBYTE = 2**30
LONGEST_VALUE = 200
# Sections of an environment whose own name says nothing about a fact in them.
SECTIONS = frozenset({"host", "devices", "software", "libraries", "fabric", "git"})
# What names a piece of hardware or changes by itself, and what the key of the case already holds.
LEFT_OUT = frozenset(
    {"hostname", "uuid", "pci_bus", "missing", "branch", "frameworks", "interfaces", "numa", "conformance"}
)
# Set by the launcher for each run anew.
LEFT_OUT_VARIABLES = frozenset(
    {"PYTHONPATH", "PYTHONUNBUFFERED", "HOME", "PATH", "PWD", "TMPDIR", "MASTER_ADDR", "MASTER_PORT"}
    | {"CUDA_VISIBLE_DEVICES"}
)
OWN_VARIABLES = "TRAINMARK_"
ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=")
CONTAINER_HOST = re.compile(r"[0-9a-f]{12}")


def environment_facts(environment: Mapping[str, Any]) -> dict[str, str]:
    """Return the facts of an environment as `trainmark env --json` prints it: kernel, driver, packages …

    Memory is rounded to GiB, of which a kernel keeps back more or less from one start to the next; network
    interfaces are the physical ones.
    """
    facts = dict(_flat(environment, ()))
    fabric = environment.get("fabric")
    cards = fabric.get("interfaces") if isinstance(fabric, Mapping) else None
    physical = [card for card in _records(cards) if card.get("physical")]
    if physical:
        facts["network"] = ", ".join(
            " ".join(str(card[name]) for name in ("name", "state", "speed_mbps", "mtu") if card.get(name))
            for card in physical
        )
    return facts


def variable_facts(variables: Mapping[str, str]) -> dict[str, str]:
    """Return the environment variables that were set for the ranks, but for those that say where they run."""
    return {
        f"variables.{name}": _text(value)
        for name, value in variables.items()
        if name not in LEFT_OUT_VARIABLES and not name.startswith(OWN_VARIABLES)
    }


def framework_facts(reported: Mapping[str, Any]) -> dict[str, str]:
    """Return what a framework reported of itself, such as its CUDA and cuDNN."""
    return {
        name if name == "framework_version" else f"framework.{name}": _text(value)
        for name, value in reported.items()
        if name not in LEFT_OUT and isinstance(value, (str, int, float))
    }


def command_fact(command: str, folder: str) -> dict[str, str]:
    """Return the words of the command after its variables, without paths into the run's own folder.

    Of the program, which may lie in another environment each time, only the name counts. What a shell runs is
    its line, with the variables that it sets.
    """
    words = _words(command)
    while words and ASSIGNMENT.match(words[0]):
        words.pop(0)
    if words[:2] == ["sh", "-c"] and len(words) == 3:
        words = _words(words[2])
    own = [word for word in words if not folder or f"/{folder}/" not in f"{word}/"]
    program = next((at for at, word in enumerate(own) if not ASSIGNMENT.match(word)), None)
    if program is not None:
        own[program] = own[program].rpartition("/")[2]
    return {"command": scrub_text(" ".join(own))} if own else {}


def command_parts(command: str) -> list[str]:
    """Return the words of a command, those of an option and its value together."""
    parts: list[str] = []
    for word in command.split():
        if parts and re.fullmatch(r"-[^\s=]+", parts[-1]) and not word.startswith("-"):
            parts[-1] += f" {word}"
        else:
            parts.append(word)
    return parts


def parts_only_in(command: str, other: str) -> list[str]:
    """Return the parts of a command that the other has fewer of."""
    return list((Counter(command_parts(command)) - Counter(command_parts(other))).elements())


def _words(line: str) -> list[str]:
    """Return the words of a shell's line; where its quotes do not close, what blanks part."""
    try:
        return shlex.split(line)
    except ValueError:
        return line.split()


def machine_of(environment: Mapping[str, Any]) -> str:
    """Return the host name; `container` where a container has only the random one that its engine gave."""
    host = environment.get("host")
    name = host.get("hostname") if isinstance(host, Mapping) else None
    if not isinstance(name, str):
        return ""
    return "container" if environment.get("container") and CONTAINER_HOST.fullmatch(name) else name


def _flat(value: Any, path: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    if isinstance(value, Mapping):
        for name, inner in value.items():
            if name == "variables" and isinstance(inner, Mapping):
                yield from variable_facts(inner).items()
            elif name not in LEFT_OUT:
                yield from _flat(inner, (*path, str(name)))
    elif records := _records(value):
        for name in dict.fromkeys(name for record in records for name in record if name not in LEFT_OUT):
            values = dict.fromkeys(_text(record[name]) for record in records if record.get(name) is not None)
            if values:
                yield _name((*path, str(name))), ", ".join(values)
        if len(records) > 1:
            yield _name((*path, "count")), str(len(records))
    elif isinstance(value, (list, tuple)):
        if value:
            yield _name(path), _text(", ".join(map(str, value)))
    elif value is not None:
        yield _name(path), _memory(path, value)


def _memory(path: Sequence[str], value: Any) -> str:
    if path and path[-1].endswith("bytes") and isinstance(value, (int, float)):
        return f"{round(value / GIBIBYTE)} GiB"
    return _text(value)


def _name(path: tuple[str, ...]) -> str:
    """`host.cpu.governor` is `cpu.governor`; what is left without its section keeps it."""
    return ".".join(path[1:] if len(path) > 1 and path[0] in SECTIONS else path)


def _records(value: Any) -> list[Mapping[str, Any]]:
    is_list = isinstance(value, (list, tuple)) and all(isinstance(item, Mapping) for item in value)
    return list(value) if is_list else []


def _text(value: Any) -> str:
    """One value; a long text, such as the matrix of GPU links, as its digest."""
    text = str(value).strip()
    if "\n" in text or len(text) > LONGEST_VALUE:
        return f"sha256 {hashlib.sha256(text.encode('utf-8', 'backslashreplace')).hexdigest()[:12]}"
    return text


LEAST_FIT = 0.05
USUAL_FIT = 0.25
LEAST_MEASURED_DIFFERENCE = 0.01
ONE_SIDED_FIT = 0.5
# Among facts that fit equally well, the likelier cause first; others follow by name.
LIKELY_CAUSES = (
    "framework_version",
    "framework.",
    "driver",
    "cuda_driver",
    "command",
    "commit",
    "dirty",
    "changes",
    "threads",
    "variables.",
    "packages.",
    "clock_mhz",
    "kernel",
    "cpu.governor",
    "cpu.turbo",
)
MAY_BE_ABSENT = ("variables.", "packages.")


@dataclass(frozen=True)
class FactChange:
    """A fact that differs between two sides; None is "not recorded", `fit` goes from 0 to 1."""

    name: str
    before: str | None
    after: str | None
    fit: float


def changed_facts(
    points: Sequence[RunPoint], index: int, start: int = 0, stop: int | None = None
) -> tuple[FactChange, ...]:
    """Return the facts that changed at `index`, the best fit first.

    `start` and `stop` are the neighbouring changes: results beyond them belong to other levels.
    """
    before, after = points[start:index], points[index:stop]
    if not before or not after:
        return ()
    names = dict.fromkeys(name for point in (*before, *after) for name in point.facts)
    candidates = (_at_boundary(_change(name, before, after), before[-1], after[0]) for name in names)
    return tuple(sorted((fact for fact in candidates if fact is not None), key=_rank))


def _at_boundary(fact: FactChange, last: RunPoint, first: RunPoint) -> FactChange | None:
    """Return the fact where it fits, or where it differs between the two results around the change.

    One with a poor fit has no usual value: those of these two results stand for it. None for other facts.
    """
    old, new = last.facts.get(fact.name), first.facts.get(fact.name)
    if fact.name in MEASURED_FACTS or old == new:
        return fact if fact.fit >= LEAST_FIT else None
    return fact if fact.fit >= USUAL_FIT else replace(fact, before=old, after=new)


def fact_differences(before: RunPoint, after: RunPoint) -> tuple[FactChange, ...]:
    """Return every fact in which two results differ, the likelier cause of a change first.

    Measured quantities differ from 1 % on.
    """
    names = dict.fromkeys((*before.facts, *after.facts))
    changes = (_change(name, [before], [after]) for name in names)
    return tuple(sorted((replace(fact, fit=1.0) for fact in changes if fact.fit), key=_rank))


def settings_that_differ(before: RunPoint, after: RunPoint) -> tuple[FactChange, ...]:
    """Return the facts in which two results differ, without what was measured during the trials.

    What one side alone has recorded tells its version of Trainmark, unless it is a variable or a package.
    """
    return tuple(
        fact
        for fact in fact_differences(before, after)
        if fact.name not in MEASURED_FACTS
        and (fact.name.startswith(MAY_BE_ABSENT) or None not in (fact.before, fact.after))
    )


def _change(name: str, before: Sequence[RunPoint], after: Sequence[RunPoint]) -> FactChange:
    sides = [[point.facts.get(name) for point in side] for side in (before, after)]
    if name in MEASURED_FACTS and (measured := _measured(name, *sides)):
        return measured
    (old, old_count), (new, new_count) = (Counter(side).most_common(1)[0] for side in sides)
    fit = 0.0 if old == new else (old_count / len(before)) * (new_count / len(after))
    one_sided = old is None or new is None
    return FactChange(
        name, old, new, fit * ONE_SIDED_FIT if one_sided and not name.startswith(MAY_BE_ABSENT) else fit
    )


def _measured(name: str, before: Sequence[str | None], after: Sequence[str | None]) -> FactChange | None:
    """Return the change of a measured quantity; None where a side has no number."""
    old, new = _numbers(before), _numbers(after)
    if not old or not new:
        return None
    low, high = statistics.median(old), statistics.median(new)
    if abs(high - low) < LEAST_MEASURED_DIFFERENCE * max(abs(low), abs(high)):
        return FactChange(name, f"{low:g}", f"{high:g}", 0.0)
    near_old = sum(abs(value - low) < abs(value - high) for value in old)
    near_new = sum(abs(value - high) < abs(value - low) for value in new)
    return FactChange(name, f"{low:g}", f"{high:g}", (near_old / len(before)) * (near_new / len(after)))


def _numbers(texts: Sequence[str | None]) -> list[float]:
    numbers = []
    for text in texts:
        try:
            number = float(text or "")
        except ValueError:
            continue
        if isfinite(number):
            numbers.append(number)
    return numbers


def _rank(fact: FactChange) -> tuple[float, int, str]:
    places = (place for place, name in enumerate(LIKELY_CAUSES) if _is_or_begins(fact.name, name))
    return -round(fact.fit, 6), next(places, len(LIKELY_CAUSES)), fact.name


def _is_or_begins(name: str, likely: str) -> bool:
    return name.startswith(likely) if likely.endswith(".") else name == likely
