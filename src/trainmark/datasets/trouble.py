"""What can be wrong with a picture or its place in a set: named, counted, and left out or kept."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from trainmark.datasets import picture

UNREADABLE, NO_FILE, NO_LABEL, TOO_LARGE = "unreadable", "no-file", "label-out-of-range", "too-large"
NAME, MISLABELLED, EMPTY_CLASS, FOLDER = "name", "mislabelled", "empty-class", "unreadable-folder"

WORDS = {
    **picture.WORDS,
    UNREADABLE: "cannot be read",
    NO_FILE: "is no plain file",
    NO_LABEL: "has a label out of range",
    TOO_LARGE: "is larger than the format allows",
    NAME: "has a name that the format cannot hold",
    MISLABELLED: "is the same picture as one of another class",
    EMPTY_CLASS: "is a class without a picture",
    FOLDER: "is a folder that cannot be read",
}
# ImageNet holds pictures of these kinds.
TOLERATED = frozenset({*picture.BEARABLE, MISLABELLED})
KEEPABLE = frozenset({*picture.WORDS, MISLABELLED}) - {picture.EMPTY, picture.UNKNOWN}


class Trouble(NamedTuple):
    """One picture, or one folder, and all that is wrong with it; `note` says more."""

    name: str
    codes: tuple[str, ...]
    tolerated: bool = False
    note: str = ""

    def __str__(self) -> str:
        words = " and ".join(WORDS[code] for code in self.codes)
        return f"{self.name} {words}{f' ({self.note})' if self.note else ''}"


def counted(troubles: Iterable[Trouble]) -> dict[str, int]:
    """How many there are of each kind."""
    counts: dict[str, int] = {}
    for trouble in troubles:
        for code in trouble.codes:
            counts[code] = counts.get(code, 0) + 1
    return counts
