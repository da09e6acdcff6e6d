"""UUIDs of runs and trials, which stay with a result wherever it is copied, and the schema of their folders.

A run draws its UUID when it is created; that of a trial follows from it. Folders of schema 1 (version 0.1.0)
have neither: their UUIDs are made of what they hold, so that they come out the same each time.
"""

from __future__ import annotations

import hashlib
import uuid
from dataclasses import replace
from pathlib import Path
from typing import Any

from trainmark.base import typed_json
from trainmark.events.stream import StreamError, line_blocks
from trainmark.store.files import StoreError, read_object, write_json
from trainmark.store.run import RUN, RunFolder, RunInfo
from trainmark.store.trial import (
    EVENTS,
    FIGURE,
    SPEC,
    TrialRecord,
    TrialSpec,
    finished_trials,
    read_record,
    read_spec,
)

# 1: folders without a UUID. 2: `uuid` and `schema` in run.json and trial.json.
SCHEMA = 2
NAMESPACE = uuid.uuid5(uuid.NAMESPACE_URL, "https://trainmark/identity")


def new_uuid() -> str:
    return str(uuid.uuid4())


def run_uuid(info: RunInfo) -> str:
    """Return the UUID of a run; of one without, that of its name, its time and what was typed."""
    if info.uuid is not None:
        return info.uuid
    return _derived(NAMESPACE, "run", info.name, repr(info.created), info.version, info.command)


def trial_uuid(run: str, case: str, repeat: int, started: float) -> str:
    """Return the UUID of an attempt at a trial: another one for each time that it was started."""
    return _derived(_uuid(run), "trial", case, str(repeat), repr(started))


def trial_identity(folder: Path, spec: TrialSpec, run: str) -> str:
    """Return the UUID of a stored trial; of one without, that of its events, or of its place in the run."""
    if spec.uuid is not None:
        return spec.uuid
    digest = events_digest(folder)
    if digest is None:
        return trial_uuid(run, spec.case, spec.repeat, spec.started or 0.0)
    return _derived(NAMESPACE, "events", digest)


def events_digest(trial: Path) -> str | None:
    """Return the SHA-256 over names and contents of a trial's event files; None where it has none."""
    digest = hashlib.sha256()
    files = sorted((trial / EVENTS).glob("rank*.jsonl"))
    for path in files:
        digest.update(f"{path.name}\n".encode())
        try:
            for block in line_blocks(path):
                digest.update(block)
        except StreamError as error:
            raise StoreError(f"{path} cannot be read: {error}.") from error
    return digest.hexdigest() if files else None


def migrate(run: RunFolder) -> int:
    """Bring a folder of an earlier schema to this one, in place; return how many files were rewritten.

    Each file is replaced whole, and what has been migrated is passed over: a migration that was cut short is
    finished by the next. StoreError, before anything is written, where a file cannot be read or is newer.
    """
    rewritten = migrated_files(run)
    for path, plain in rewritten.items():
        write_json(path, plain)
    return len(rewritten)


def migrated_files(run: RunFolder) -> dict[Path, dict[str, Any]]:
    """Return what run.json and the trials' files must hold in this schema, where they hold something else."""
    files = {run.path / RUN: read_object(run.path / RUN)}
    info = run.info
    if damage := run.damaged.get(RUN):
        raise StoreError(f"{run.path}: {damage.sentence}")
    files[run.path / RUN].update(uuid=run_uuid(info), schema=_known(run.path / RUN, info.schema))
    for folder in finished_trials(run.trials):
        spec = read_spec(folder)
        record = read_record(folder, spec)
        identity = trial_identity(folder, spec, run_uuid(info))
        files[folder / SPEC] = {
            **read_object(folder / SPEC),
            **_spec_fields(record),
            "uuid": identity,
            "schema": _known(folder / SPEC, spec.schema),
        }
        plain = typed_json.encode(replace(record, spec=spec))
        del plain["spec"]
        # Names of 0.1.0 become those of this version; whatever else stands there stays.
        files[folder / FIGURE] = _renamed(read_object(folder / FIGURE), plain)
    return {path: plain for path, plain in files.items() if plain != read_object(path)}


def _spec_fields(record: TrialRecord) -> dict[str, Any]:
    """What trial.json of 0.1.0 leaves to figure.json."""
    spec = record.spec
    return {
        "key": typed_json.encode(spec.key or record.key),
        "started": record.started if spec.started is None else spec.started,
        "fingerprint": spec.fingerprint or record.environment,
    }


def _renamed(stored: dict[str, Any], encoded: dict[str, Any]) -> dict[str, Any]:
    """Only the finish of a training has other names than in 0.1.0."""
    figure, renamed = stored.get("figure"), encoded["figure"]
    if not isinstance(figure, dict) or not isinstance(figure.get("finish"), dict):
        return stored
    if "metrics" in figure["finish"]:
        return stored
    return {**stored, "figure": {**figure, "finish": renamed["finish"]}}


def _known(path: Path, schema: int | None) -> int:
    if schema is not None and schema > SCHEMA:
        raise StoreError(f"{path} is of schema {schema}, newer than {SCHEMA}; upgrade Trainmark.")
    return SCHEMA


def _derived(namespace: uuid.UUID, *parts: str) -> str:
    # No part can hold the separator unless a file was edited; the result is then that of the edited file.
    return str(uuid.uuid5(namespace, "\x1f".join(parts)))


def _uuid(text: str) -> uuid.UUID:
    try:
        return uuid.UUID(text)
    except ValueError as error:
        raise StoreError(f"'{text:.60}' is no UUID; the run's run.json is damaged.") from error
