"""Hosts as people write them: a list, a hostfile with slots, or an inventory in YAML."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

from trainmark.base import yaml_source
from trainmark.base.errors import UserError, nearest
from trainmark.launch.nodes import Node

SLOTS = re.compile(r"(?:slots|max_slots|max-slots)\s*=\s*(\d+)")
WITH_SLOTS = re.compile(r"(?P<name>[^:]+):(?P<slots>\d+)")
LARGEST_BYTES = 1 << 20
LIST_OF_HOSTS = "a list of hosts"


def from_list(text: str) -> tuple[Node, ...]:
    """`node1,node2:8,user@node3`."""
    return _distinct([_node(part.strip()) for part in text.split(",") if part.strip()], "--hosts")


def from_hostfile(path: Path) -> tuple[Node, ...]:
    """A host a line, as Open MPI (`node1 slots=8`) and MPICH (`node1:8`) write it; `#` begins a comment."""
    nodes = []
    for number, line in enumerate(yaml_source.file_text(path, LIST_OF_HOSTS, LARGEST_BYTES).splitlines(), 1):
        words = line.partition("#")[0].split(maxsplit=1)
        if not words:
            continue
        node = _node(words[0])
        if len(words) > 1:
            match = SLOTS.search(words[1])
            if not match:
                raise UserError(f"{path}:{number}: '{words[1].strip()}' is not understood; write `slots=8`.")
            node = _with_slots(node, _count(match[1]), f"{path}:{number}")
        nodes.append(node)
    return _distinct(nodes, str(path))


def from_inventory(path: Path) -> tuple[Node, ...]:
    """`nodes:` lists them, `defaults:` holds for those that say nothing else."""
    source = yaml_source.read(yaml_source.file_text(path, LIST_OF_HOSTS, LARGEST_BYTES), str(path))
    data = source.data
    if not isinstance(data, dict) or not isinstance(data.get("nodes"), list):
        raise UserError(f"{path}: an inventory is a mapping with a list of `nodes`.")
    _refuse_unknown(data, ("nodes", "defaults"), source.at(()))
    defaults = data.get("defaults") or {}
    nodes = []
    for index, entry in enumerate(data["nodes"]):
        at = source.at(("nodes", index))
        given = {"name": entry} if isinstance(entry, str) else entry
        if not isinstance(given, dict) or not isinstance(defaults, dict):
            raise UserError(f"{at}: a node is a name or a mapping with a `name`.")
        nodes.append(_from_mapping({**defaults, **given}, at))
    return _distinct(nodes, str(path))


def labelled(nodes: Sequence[Node], labels: Sequence[str]) -> tuple[Node, ...]:
    """Those that bear every one of them."""
    matching = tuple(node for node in nodes if set(labels) <= set(node.labels))
    if not matching:
        known = sorted({label for node in nodes for label in node.labels})
        raise UserError(
            f"no node has the label {' and '.join(labels)}; there are {', '.join(known) or 'none'}."
        )
    return matching


def _from_mapping(given: dict[str, Any], at: str) -> Node:
    known = tuple(field.name for field in fields(Node))
    _refuse_unknown(given, known, at)
    if not isinstance(given.get("name"), str):
        raise UserError(f"{at}: a node needs a `name`: the host that it is reached by.")
    values = dict(given)
    devices = values.pop("devices", None)
    if isinstance(devices, int) and not isinstance(devices, bool):
        values.setdefault("slots", devices)
    elif devices is not None:
        if not isinstance(devices, list) or not all(type(each) is int and each >= 0 for each in devices):
            raise UserError(f"{at}: `devices` takes their number, or a list of their indices.")
        values["devices"], values["slots"] = tuple(devices), values.get("slots", len(devices))
    labels = values.get("labels", [])
    if not isinstance(labels, list) or not all(isinstance(label, str) for label in labels):
        raise UserError(f"{at}: `labels` takes a list of words.")
    values["labels"] = tuple(labels)
    for name in ("address", "interface", "python", "scratch"):
        if not isinstance(values.get(name, ""), str):
            raise UserError(f"{at}: `{name}` takes text.")
    slots = values.pop("slots", None)
    node = Node(**values)
    return node if slots is None else _with_slots(node, slots, at)


def _node(text: str) -> Node:
    # An IPv6 address is full of colons; its slots are given in a hostfile or an inventory.
    if (match := WITH_SLOTS.fullmatch(text)) and ":" not in match["name"]:
        return _with_slots(Node(match["name"]), _count(match["slots"]), text)
    return Node(text)


def _count(digits: str) -> int:
    """The number, or one that is too large as well: thousands of digits are not converted."""
    return int(digits[:9])


def _with_slots(node: Node, slots: Any, at: str) -> Node:
    if type(slots) is not int or not 1 <= slots <= 1024:
        raise UserError(f"{at}: a node has 1 to 1024 slots, not {slots}.")
    return replace(node, slots=slots)


def _distinct(nodes: Sequence[Node], origin: str) -> tuple[Node, ...]:
    counts = Counter(node.name for node in nodes)
    if not counts:
        raise UserError(f"{origin} names no host.")
    if twice := sorted(name for name, count in counts.items() if count > 1):
        raise UserError(f"{origin} names {twice[0]} twice; give it more slots instead.")
    return tuple(nodes)


def _refuse_unknown(given: dict[str, Any], known: Sequence[str], at: str) -> None:
    for key in given:
        if key not in known:
            raise UserError(f"{at}: there is no key '{key}'{nearest(str(key), known)}")
