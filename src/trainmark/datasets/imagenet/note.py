"""Something in a tar that a person should know of, by name."""

from __future__ import annotations

from dataclasses import dataclass

DAMAGED, TOLERATED = "damaged", "kept"
# Beside the codes of `picture`.
TAR, NO_LABEL, NAME, TWICE, EMPTY = "tar", "no-label", "name", "twice", "empty-class"


@dataclass(frozen=True)
class Note:
    """`kind`: left out because it is damaged, or kept although it is unusual."""

    kind: str
    code: str
    text: str

    def line(self) -> str:
        return f"{self.kind} {self.code} {self.text}"

    @classmethod
    def of(cls, line: str) -> Note:
        kind, code, text = line.split(" ", 2)
        return cls(kind, code, text)


def damaged(code: str, text: str) -> Note:
    return Note(DAMAGED, code, " ".join(text.split()))


def unusual(code: str, text: str) -> Note:
    return Note(TOLERATED, code, " ".join(text.split()))
