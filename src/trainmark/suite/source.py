"""YAML read with the line of every key, so that an error can point at it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import yaml

from trainmark.suite.errors import SuiteError

Path = tuple[str | int, ...]


@dataclass(frozen=True)
class Source:
    """Plain values, and where each of them stands."""

    name: str
    data: Any
    lines: dict[Path, int] = field(default_factory=dict)

    def at(self, path: Path) -> str:
        """`suite.yaml:14`, or the file alone for what has no line (an override from the command line)."""
        while path and path not in self.lines:
            path = path[:-1]
        return f"{self.name}:{self.lines[path]}" if path in self.lines else self.name


def read(text: str, name: str) -> Source:
    lines: dict[Path, int] = {}
    try:
        loader = yaml.SafeLoader(text)
        node = loader.get_single_node()
        if node is None:
            raise SuiteError(f"{name} is empty; see `trainmark suites show quick` for an example.")
        _note_lines(node, (), lines, name)
        return Source(name, loader.construct_document(node), lines)
    except yaml.MarkedYAMLError as error:
        line = f":{error.problem_mark.line + 1}" if error.problem_mark else ""
        raise SuiteError(f"{name}{line}: not valid YAML: {error.problem}.") from error
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        if isinstance(error, SuiteError):
            raise
        raise SuiteError(f"{name}: not valid YAML: {' '.join(str(error).split())}.") from error


def _note_lines(node: yaml.Node, path: Path, lines: dict[Path, int], name: str) -> None:
    lines[path] = node.start_mark.line + 1
    if isinstance(node, yaml.MappingNode):
        seen = set()
        for key, value in node.value:
            line = key.start_mark.line + 1
            if key.value in seen:
                raise SuiteError(f"{name}:{line}: '{key.value}' is given twice; keep one.")
            seen.add(key.value)
            _note_lines(value, (*path, key.value), lines, name)
            lines[(*path, key.value)] = line
    elif isinstance(node, yaml.SequenceNode):
        for index, item in enumerate(node.value):
            _note_lines(item, (*path, index), lines, name)
