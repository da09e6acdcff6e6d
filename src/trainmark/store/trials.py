"""All finished trials of a run: read, made again from their events, or set aside as damaged."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from trainmark.measure.key import Key
from trainmark.store.files import Damage, StoreError
from trainmark.store.recompute import recovered_record
from trainmark.store.trial import (
    FIGURE,
    SPEC,
    TrialRecord,
    TrialSpec,
    finished_trials,
    read_record,
    read_spec,
)

AGAIN = "its figure was computed again from its events"
TO_RESUME = "it was left out, and `trainmark run --resume` measures it again"


def read_trials(run: Path, trials: Path, damaged: dict[str, Damage]) -> list[TrialRecord]:
    """Records in the order of case and repeat; what is wrong with the others goes to `damaged`, by file."""
    records: list[TrialRecord | None] = []
    broken: list[tuple[int, Path, TrialSpec, str]] = []
    for number, folder in enumerate(finished_trials(trials)):
        try:
            spec = read_spec(folder)
        except (StoreError, OSError) as error:
            place = f"{folder.relative_to(run)}/{SPEC}"
            spec = TrialSpec(folder.parent.name, int(folder.name), "", {}, 0, 0)
            damaged[place] = Damage(place, _reason(error, folder / SPEC))
        try:
            records.append(read_record(folder, spec))
        except (StoreError, OSError) as error:
            records.append(None)
            broken.append((number, folder, spec, _reason(error, folder / FIGURE)))
    for number, folder, spec, reason in broken:
        place = f"{folder.relative_to(run)}/{FIGURE}"
        try:
            records[number] = _recovered(folder, spec, filter(None, records))
            damaged[place] = Damage(place, reason, AGAIN, recovered=True)
        except StoreError as error:
            damaged[place] = Damage(place, f"{reason}, and {error}", TO_RESUME)
    return [record for record in records if record is not None]


def _recovered(folder: Path, spec: TrialSpec, others: Iterable[TrialRecord]) -> TrialRecord:
    """By its own key, or by that of another trial of its case, which has the same."""
    siblings = [record for record in others if record.spec.case == spec.case]
    key: Key | None = spec.key or (siblings[0].key if siblings else None)
    if key is None or not spec.steps:
        raise StoreError("what was asked for is not known")
    environment = spec.fingerprint or (siblings[0].environment if siblings else "")
    return recovered_record(folder, spec, key, environment)


def _reason(error: Exception, path: Path) -> str:
    return str(error).removeprefix(f"{path} ").removeprefix("is damaged: ").rstrip(".")
