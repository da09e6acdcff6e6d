"""What is wrong with a set: which file, in which way, and which records it concerns."""

from __future__ import annotations

from typing import NamedTuple

MISSING, EXTRA, SHORT, DIFFERS = "missing", "extra", "short", "differs"
UNFINISHED, STRUCTURE, PICTURE, UNREADABLE = "unfinished", "structure", "picture", "unreadable"
NAMED = 20


class Finding(NamedTuple):
    """`records` are the names of the damaged ones; the sentence names the first of them."""

    file: str
    kind: str
    what: str
    records: tuple[str, ...] = ()

    def __str__(self) -> str:
        if not self.records:
            return f"{self.file}: {self.what}"
        more = f" and {len(self.records) - NAMED:,} more" if len(self.records) > NAMED else ""
        return f"{self.file}: {self.what}: {', '.join(self.records[:NAMED])}{more}"
