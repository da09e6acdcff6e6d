"""Texts with named values: English as they stand in the code, any other language where they are shown."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


class Message(str):
    """A finished English text that remembers its template and values, by which a catalogue translates it."""

    template: str
    values: dict[str, Any]

    def __new__(cls, template: str, /, **values: Any) -> Message:
        self = super().__new__(cls, template.format(**values))
        self.template, self.values = template, values
        return self

    def worded(self, text: str) -> Message:
        """Return another version's English for this message, such as one that was stored."""
        other = str.__new__(Message, text)
        other.template, other.values = self.template, self.values
        return other

    def __getnewargs_ex__(self) -> tuple[tuple[str], dict[str, Any]]:
        return (self.template,), self.values


_ = Message


def _n(count: int, one: str, many: str, /, **values: Any) -> Message:
    """Return `one` for a count of 1, else `many`; both may name {count}, whose thousands are separated."""
    return Message(one if count == 1 else many, count=f"{count:,}", **values)


def joined(parts: Sequence[str], separator: str) -> Message:
    """Join parts, each in the reader's language, as is the separator where it is a message."""
    places = {f"part{place}": part for place, part in enumerate(parts)}
    return Message("{separator}".join(f"{{{name}}}" for name in places), separator=separator, **places)
