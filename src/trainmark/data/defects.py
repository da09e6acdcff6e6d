"""What can be wrong with a picture, its place in a set, a file of a set, or one of ImageNet's tars."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from trainmark.data import picture

UNREADABLE, NO_FILE, NO_LABEL, TOO_LARGE = "unreadable", "no-file", "label-out-of-range", "too-large"
NAME, MISLABELLED, EMPTY_CLASS, UNREADABLE_FOLDER = "name", "mislabelled", "empty-class", "unreadable-folder"

ALL_DEFECTS = {
    **picture.PICTURE_DEFECTS,
    UNREADABLE: "cannot be read",
    NO_FILE: "is no plain file",
    NO_LABEL: "has a label out of range",
    TOO_LARGE: "is larger than the format allows",
    NAME: "has a name that the format cannot hold",
    MISLABELLED: "is the same picture as one of another class",
    EMPTY_CLASS: "is a class without a picture",
    UNREADABLE_FOLDER: "is a folder that cannot be read",
}
# ImageNet holds pictures of these kinds.
TOLERATED = frozenset({*picture.TOLERATED_DEFECTS, MISLABELLED})
KEEPABLE = frozenset({*picture.PICTURE_DEFECTS, MISLABELLED}) - {picture.EMPTY, picture.UNKNOWN}


class PictureDefect(NamedTuple):
    """One picture, or one folder, and all that is wrong with it; `note` says more."""

    name: str
    codes: tuple[str, ...]
    tolerated: bool = False
    note: str = ""

    def __str__(self) -> str:
        words = " and ".join(ALL_DEFECTS[code] for code in self.codes)
        return f"{self.name} {words}{f' ({self.note})' if self.note else ''}"


def count_defects(troubles: Iterable[PictureDefect]) -> dict[str, int]:
    """How many there are of each kind."""
    counts: dict[str, int] = {}
    for trouble in troubles:
        for code in trouble.codes:
            counts[code] = counts.get(code, 0) + 1
    return counts


MISSING, EXTRA, SHORT, DIFFERS = "missing", "extra", "short", "differs"
UNFINISHED, STRUCTURE, PICTURE, UNREADABLE_FILE = "unfinished", "structure", "picture", "unreadable"
MOST_NAMED = 20


class SetFinding(NamedTuple):
    """`records` are the names of the damaged ones; the sentence names the first of them."""

    file: str
    kind: str
    what: str
    records: tuple[str, ...] = ()

    def __str__(self) -> str:
        if not self.records:
            return f"{self.file}: {self.what}"
        more = f" and {len(self.records) - MOST_NAMED:,} more" if len(self.records) > MOST_NAMED else ""
        return f"{self.file}: {self.what}: {', '.join(self.records[:MOST_NAMED])}{more}"


TAR_DAMAGED, TAR_TOLERATED = "damaged", "kept"
# Beside the codes of `picture`.
BAD_TAR, TAR_NO_LABEL, TAR_NAME, TAR_TWICE, TAR_EMPTY_CLASS = (
    "tar",
    "no-label",
    "name",
    "twice",
    "empty-class",
)


@dataclass(frozen=True)
class TarNote:
    """`kind`: left out because it is damaged, or kept although it is unusual."""

    kind: str
    code: str
    text: str

    def line(self) -> str:
        return f"{self.kind} {self.code} {self.text}"

    @classmethod
    def of(cls, line: str) -> TarNote:
        kind, code, text = line.split(" ", 2)
        return cls(kind, code, text)


def damaged_note(code: str, text: str) -> TarNote:
    return TarNote(TAR_DAMAGED, code, " ".join(text.split()))


def unusual_note(code: str, text: str) -> TarNote:
    return TarNote(TAR_TOLERATED, code, " ".join(text.split()))
