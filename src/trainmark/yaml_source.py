"""YAML read with the place of every value, so that an error can point at it."""

from __future__ import annotations

import pathlib
import re
from dataclasses import dataclass, field
from typing import Any

import yaml

from trainmark.errors import UserError

Path = tuple[str | int, ...]

# Aliases let a short file stand for billions of values; a person writes hundreds.
MOST_VALUES = 50_000
# YAML can write these with an escape, but no file name, command or UTF-8 file can hold them.
UNUSABLE = re.compile("[\0\ud800-\udfff]")
KEY_TAGS = {"tag:yaml.org,2002:str", "tag:yaml.org,2002:merge"}


class YamlError(UserError):
    """One sentence: the file, the line, what is wrong with it."""


@dataclass(frozen=True)
class Source:
    """Plain values, and where each of them was written."""

    name: str
    data: Any
    places: dict[Path, str] = field(default_factory=dict)

    def at(self, path: Path) -> str:
        """`suite.yaml:14`, or the override that set the value; the nearest place around it otherwise."""
        while path and path not in self.places:
            path = path[:-1]
        return self.places.get(path, self.name)


def file_text(path: pathlib.Path, kind: str, largest_bytes: int) -> str:
    """Of a file that a person wrote as a `kind`, such as "a suite"."""
    try:
        if path.stat().st_size > largest_bytes:
            raise YamlError(f"{path} is larger than {largest_bytes >> 20} MiB and cannot be {kind}.")
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise YamlError(f"{path} is not UTF-8 text and cannot be {kind}.") from error
    except OSError as error:
        raise YamlError(f"{path} cannot be read: {error.strerror}.") from error


def read(text: str, name: str) -> Source:
    places: dict[Path, str] = {}
    try:
        loader = yaml.SafeLoader(text)
        node = loader.get_single_node()
        if node is None:
            raise YamlError(f"{name} is empty.")
        _note_places(node, (), places, name)
        return Source(name, loader.construct_document(node), places)
    except YamlError:
        raise
    except yaml.MarkedYAMLError as error:
        line = f":{error.problem_mark.line + 1}" if error.problem_mark else ""
        raise YamlError(f"{name}{line}: not valid YAML: {error.problem}.") from error
    except RecursionError as error:
        raise YamlError(f"{name}: the values are nested too deeply.") from error
    except (yaml.YAMLError, ValueError) as error:
        raise YamlError(f"{name}: not valid YAML: {' '.join(str(error).split())}.") from error


def _note_places(node: yaml.Node, path: Path, places: dict[Path, str], name: str) -> None:
    at = places[path] = f"{name}:{node.start_mark.line + 1}"
    if len(places) > MOST_VALUES:
        raise YamlError(f"{name}: more than {MOST_VALUES} values, those that aliases repeat included.")
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            at = f"{name}:{key.start_mark.line + 1}"
            if key.tag not in KEY_TAGS:
                raise YamlError(f"{at}: a key must be text; put it in quotes if it is meant as such.")
            if (*path, key.value) in places:
                raise YamlError(f"{at}: '{key.value}' is given twice; keep one.")
            _note_places(value, (*path, key.value), places, name)
            places[(*path, key.value)] = at
    elif isinstance(node, yaml.SequenceNode):
        for index, item in enumerate(node.value):
            _note_places(item, (*path, index), places, name)
    elif UNUSABLE.search(node.value):
        raise YamlError(f"{at}: the text holds a character that cannot be stored; leave it out.")
