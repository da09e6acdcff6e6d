"""`manifest.json`, the first member of a packed run: digests, figures, and what was scrubbed."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any

from trainmark import typed_json
from trainmark.errors import UserError
from trainmark.measure.figure import TrialFigure

MANIFEST, SIGNATURE = "manifest.json", "manifest.json.sig"
SCHEMA = 1
UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")


class PackError(UserError):
    """A file that is no packed run, or a run that cannot be packed: what is wrong, and what to do."""


@dataclass(frozen=True)
class MemberDigest:
    name: str
    bytes: int
    sha256: str


@dataclass(frozen=True)
class Scrubbed:
    """What was masked in one member, and where: never the value. `places` are the first few of `count`."""

    member: str
    kind: str
    count: int
    places: tuple[str, ...]


@dataclass(frozen=True)
class PackedTrial:
    """One finished trial. `digest` is over its members; the numbers are None where it has no figure."""

    uuid: str
    case: str
    repeat: int
    outcome: str
    digest: str
    throughput: float | None = None
    low: float | None = None
    high: float | None = None
    unit: str | None = None

    @property
    def name(self) -> str:
        return f"{self.case}/{self.repeat:02d}"


@dataclass(frozen=True)
class Manifest:
    """What a packed run holds, without the time of packing: the same run packs to the same bytes.

    `created` is when the run was; `version` is the Trainmark that packed it, `schema` that of this file;
    `run_version` and `run_schema` are those of the run. `left_out` names what else lies in the run's folder.
    """

    schema: int
    uuid: str
    name: str
    created: float
    version: str
    run_version: str
    run_schema: int
    members: tuple[MemberDigest, ...]
    trials: tuple[PackedTrial, ...]
    scrubbed: tuple[Scrubbed, ...]
    left_out: tuple[str, ...] = ()


def figure_numbers(figure: TrialFigure | None) -> dict[str, Any]:
    """Return the numbers of a figure that the manifest has."""
    if figure is None:
        return {"throughput": None, "low": None, "high": None, "unit": None}
    interval = figure.interval
    return {
        "throughput": figure.throughput,
        "low": interval.low if interval else None,
        "high": interval.high if interval else None,
        "unit": figure.unit,
    }


def to_bytes(manifest: Manifest) -> bytes:
    return (json.dumps(typed_json.encode(manifest), indent=1) + "\n").encode()


def from_bytes(data: bytes) -> Manifest:
    """PackError where it is no manifest, or one of a newer version."""
    try:
        plain = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise PackError(f"{MANIFEST} is no JSON: {error}.") from error
    schema = plain.get("schema") if isinstance(plain, dict) else None
    if type(schema) is int and schema > SCHEMA:
        raise PackError(f"{MANIFEST} is of schema {schema}, newer than {SCHEMA}; upgrade Trainmark.")
    try:
        manifest = typed_json.decode(Manifest, plain)
    except typed_json.DecodeError as error:
        raise PackError(f"{MANIFEST} is damaged: {error}.") from error
    for identity in (manifest.uuid, *(trial.uuid for trial in manifest.trials)):
        if not UUID.fullmatch(identity):
            raise PackError(f"{MANIFEST} is damaged: {identity[:60]!r} is no UUID.")
    return manifest


def scrubbed_counts(manifest: Manifest) -> dict[str, int]:
    """Return how much was masked of each kind."""
    counts: dict[str, int] = {}
    for note in manifest.scrubbed:
        counts[note.kind] = counts.get(note.kind, 0) + note.count
    return counts
