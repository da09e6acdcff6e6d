"""What was recorded of a trial's machine, software and settings, as facts under flat names."""

from __future__ import annotations

import hashlib
import re
import shlex
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from trainmark.base.secrets import scrub_text

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
# Quantities that were sampled during the trial: never twice the same.
MEASURED_FACTS = ("clock_mhz", "temperature_c", "power_watts")
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
