"""Whether a framework was found to train the same model as the others, as a run noted it at its start."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

NAME = "conformance"


@dataclass(frozen=True)
class Conformance:
    """`conformant` is None where it was not checked; `differs` says in words what does."""

    conformant: bool | None = None
    differs: tuple[str, ...] = ()
    checked: str | None = None

    @property
    def mark(self) -> str:
        """The name of its word: `conformant`, `not_conformant` or `not_checked`."""
        if self.conformant is None:
            return "not_checked"
        return "conformant" if self.conformant else "not_conformant"


NOT_CHECKED = Conformance()


def conformance_in(facts: Any) -> Conformance:
    """From the facts of a case; whatever is not there, or not understood, was not checked."""
    record = facts.get(NAME) if isinstance(facts, Mapping) else None
    if not isinstance(record, Mapping) or not isinstance(record.get("conformant"), bool):
        return NOT_CHECKED
    differs, checked = record.get("differs"), record.get("checked")
    return Conformance(
        record["conformant"],
        tuple(map(str, differs)) if isinstance(differs, list | tuple) else (),
        None if checked is None else str(checked),
    )
