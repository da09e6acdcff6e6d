"""What follows from a packed file, as plain values that both databases can hold."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import Any

from trainmark.base.errors import UserError

REFUSED, TOO_LARGE, CONFLICT, FORBIDDEN = 422, 413, 409, 403


class IngestError(UserError):
    """A packed file that is refused: a sentence, the status of HTTP, and what does not follow."""

    def __init__(self, sentence: str, status: int = REFUSED, differences: tuple[str, ...] = ()) -> None:
        super().__init__(sentence)
        self.status, self.differences = status, differences


@dataclass(frozen=True)
class Line:
    """One result: the columns of its case, of its result, its facts, and the trials it is made of."""

    case: dict[str, Any]
    result: dict[str, Any]
    facts: dict[str, str]
    trials: tuple[str, ...]


@dataclass(frozen=True)
class Checked:
    """The rows of a run; every number in them was computed from the events."""

    run: dict[str, Any]
    machine: dict[str, Any]
    lines: tuple[Line, ...]
    trials: tuple[dict[str, Any], ...]
    signer: str | None

    def to_json(self) -> bytes:
        return json.dumps(asdict(self), allow_nan=False).encode()

    @classmethod
    def from_json(cls, data: bytes) -> Checked:
        plain = json.loads(data)
        lines = tuple(Line(**{**line, "trials": tuple(line["trials"])}) for line in plain.pop("lines"))
        return cls(**{**plain, "lines": lines, "trials": tuple(plain["trials"])})
