"""YAML read with the place of every value, so that an error can point at it."""

from __future__ import annotations

import errno
import pathlib
import re
from dataclasses import dataclass, field
from reprlib import repr as short
from typing import Any

import yaml

from trainmark.base.errors import UserError
from trainmark.base.files import read_input

Path = tuple[str | int, ...]

# Aliases let a short file stand for billions of values; a person writes hundreds.
MOST_VALUES = 50_000
DEEPEST = 50
# A number of this many characters is none that a person means; one of a million takes minutes to convert.
LONGEST_NUMBER = 64
LONGEST_KEY = 256
LONGEST_QUOTE = 200
# YAML can write these with an escape, but no file name, command or UTF-8 file can hold them.
UNUSABLE = re.compile("[\0\ud800-\udfff]")
TAG = "tag:yaml.org,2002:"
KEY_TAGS = {f"{TAG}str", f"{TAG}merge"}
NUMBER_TAGS = {f"{TAG}int", f"{TAG}float"}
TAGS = KEY_TAGS | NUMBER_TAGS | {f"{TAG}{name}" for name in ("bool", "null", "timestamp", "seq", "map")}
# What PyYAML's constructors raise, beside their own errors, of a scalar that is not what its tag says.
MISTAGGED = (ValueError, LookupError, AttributeError, TypeError, ArithmeticError)


class YamlError(UserError):
    """One sentence: the file, the line, what is wrong with it."""


@dataclass(frozen=True)
class YamlDocument:
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
    """Return the text of a file that a person wrote as a `kind`, such as "a suite"."""
    try:
        return read_input(path, largest_bytes).decode("utf-8")
    except UnicodeDecodeError as error:
        raise YamlError(f"{path} is not UTF-8 text and cannot be {kind}.") from error
    except OSError as error:
        if error.errno == errno.EFBIG:
            raise YamlError(
                f"{path} is larger than {largest_bytes >> 20} MiB and cannot be {kind}."
            ) from error
        raise YamlError(f"{path} cannot be read: {error.strerror}.") from error


def packaged(path: pathlib.Path) -> Any:
    """Return the values of a file that lies in the package, without checks: the tests have made them."""
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # checks, and no C, take ten times as long
    return yaml.load(path.read_bytes(), Loader=loader)


def read(text: str, name: str) -> YamlDocument:
    """Return the values of one YAML document; a YamlError with the line for everything that is none."""
    places: dict[Path, str] = {}
    try:
        loader = _Loader(text, name)
        node = loader.get_single_node()
        if node is None:
            raise YamlError(f"{name} is empty.")
        _note_places(node, (), places, name)
        return YamlDocument(name, loader.construct_document(node), places)
    except yaml.MarkedYAMLError as error:
        line = f":{error.problem_mark.line + 1}" if error.problem_mark else ""
        raise YamlError(f"{name}{line}: not valid YAML: {_brief(error.problem)}.") from error
    except yaml.YAMLError as error:
        raise YamlError(f"{name}: not valid YAML: {_brief(error)}.") from error


class _Loader(yaml.SafeLoader):
    """SafeLoader that bounds depth and size while it composes, and names the line of a mistagged scalar."""

    def __init__(self, text: str, name: str) -> None:
        super().__init__(text)
        self._file, self._depth, self._count = name, 0, 0

    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:
        line = self.peek_event().start_mark.line + 1  # type: ignore[no-untyped-call]
        self._depth += 1
        self._count += 1
        _bound(self._depth - 1, self._count, self._file, line)
        try:
            return super().compose_node(parent, index)
        finally:
            self._depth -= 1

    def construct_object(self, node: yaml.Node, deep: bool = False) -> Any:
        try:
            return super().construct_object(node, deep)
        except MISTAGGED as error:
            line = node.start_mark.line + 1
            kind = node.tag.removeprefix(TAG)
            raise YamlError(
                f"{self._file}:{line}: {short(node.value)} is no {kind}; put it in quotes if it is text."
            ) from error


def _brief(problem: object) -> str:
    """Return PyYAML's own words on one line; they may quote a whole file."""
    words = " ".join(str(problem).split())
    return words if len(words) <= LONGEST_QUOTE else f"{words[:LONGEST_QUOTE]}…"


def _bound(depth: int, count: int, name: str, line: int) -> None:
    if depth > DEEPEST:
        raise YamlError(f"{name}:{line}: the values are nested deeper than {DEEPEST} levels.")
    if count > MOST_VALUES:
        raise YamlError(f"{name}: more than {MOST_VALUES} values, those that aliases repeat included.")


def _note_places(node: yaml.Node, path: Path, places: dict[Path, str], name: str) -> None:
    line = node.start_mark.line + 1
    at = places[path] = f"{name}:{line}"
    _bound(len(path), len(places), name, line)
    if node.tag not in TAGS:
        tag = _brief(node.tag.replace(TAG, "!!"))
        raise YamlError(f"{at}: the tag {tag} is not understood here; leave it out.")
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            at = f"{name}:{key.start_mark.line + 1}"
            _check_key(key, at)
            if (*path, key.value) in places:
                raise YamlError(f"{at}: '{key.value}' is given twice; keep one.")
            _note_places(value, (*path, key.value), places, name)
            places[(*path, key.value)] = at
    elif isinstance(node, yaml.SequenceNode):
        for index, item in enumerate(node.value):
            _note_places(item, (*path, index), places, name)
    elif UNUSABLE.search(node.value):
        raise YamlError(f"{at}: the text holds a character that cannot be stored; leave it out.")
    elif node.tag in NUMBER_TAGS and len(node.value) > LONGEST_NUMBER:
        raise YamlError(f"{at}: a number of {len(node.value)} characters; put it in quotes if it is text.")


def _check_key(key: yaml.Node, at: str) -> None:
    if not isinstance(key, yaml.ScalarNode) or key.tag not in KEY_TAGS:
        raise YamlError(f"{at}: a key must be text; put it in quotes if it is meant as such.")
    if UNUSABLE.search(key.value):
        raise YamlError(f"{at}: the key holds a character that cannot be stored; leave it out.")
    if len(key.value) > LONGEST_KEY:
        raise YamlError(f"{at}: a key of {len(key.value)} characters; keys have at most {LONGEST_KEY}.")
