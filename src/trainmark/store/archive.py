"""`NAME.trainmark`: one file that holds a run, scrubbed, with digests and figures that can be verified."""

from __future__ import annotations

import io
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, BinaryIO

from trainmark import __version__
from trainmark.base import typed_json
from trainmark.base.files import open_regular, read_regular, sha256_of, whole_file
from trainmark.store import tarball
from trainmark.store.files import json_text, read_object
from trainmark.store.identity import SCHEMA as RUN_SCHEMA
from trainmark.store.identity import migrated_files
from trainmark.store.manifest import (
    MANIFEST,
    SCHEMA,
    SIGNATURE,
    Manifest,
    MemberDigest,
    PackedTrial,
    PackError,
    Scrubbed,
    decode_manifest,
    encode_manifest,
    figure_numbers,
    folders_left_out,
    members_of,
    sign_manifest,
)
from trainmark.store.recompute import figure_differences, recomputed_figure
from trainmark.store.run import NOT_AS_WRITTEN, RunFolder
from trainmark.store.scrubbing import Scrubber
from trainmark.store.trial import FIGURE, TrialRecord, finished_trials, read_record, read_spec
from trainmark.store.unpack import LARGEST_MANIFEST_BYTES, unpack
from trainmark.store.verify import PackVerification, trial_digests, verify

__all__ = ["SUFFIX", "PackedRun", "pack", "unpack", "verify"]

SUFFIX = ".trainmark"


@dataclass(frozen=True)
class PackedRun:
    """What was written, and that it verifies."""

    path: Path
    bytes: int
    sha256: str
    verification: PackVerification

    @property
    def manifest(self) -> Manifest:
        return self.verification.manifest


def pack(run: RunFolder, out: Path, *, key: Path | None = None, recompute: bool = False) -> PackedRun:
    """Write the run, scrubbed and migrated, to `out`; its own folder is not touched.

    PackError, and nothing written, where a figure does not follow from its events; with `recompute` the
    packed copy has what follows. `key` is an SSH key to sign with.
    """
    if out.is_dir():
        raise PackError(f"{out} is a folder; name a file.")
    with tempfile.TemporaryDirectory(prefix="trainmark-pack-") as place:
        copy = RunFolder(Path(place) / "run")
        scrubbed = _copy(run, copy.path)
        records = [_measured(folder, recompute) for folder in finished_trials(copy.trials)]
        files = members_of(copy.path)
        manifest = _manifest(run, copy, {name: _digest(name, path) for name, path in files.items()}, records)
        header = encode_manifest(replace(manifest, scrubbed=scrubbed))
        heading = (
            {MANIFEST: header} if key is None else {MANIFEST: header, SIGNATURE: sign_manifest(header, key)}
        )
        return _write(out, heading, files)


def _copy(run: RunFolder, folder: Path) -> tuple[Scrubbed, ...]:
    """Write what is packed of a run, migrated and scrubbed; return what was masked."""
    migrated = migrated_files(run)
    scrubber = Scrubber(suite=run.suite)
    scrubbed: list[Scrubbed] = list(_earlier(run).scrubbed)
    for name, path in members_of(run.path).items():
        try:
            data = read_regular(path, tarball.LIMITS.member_bytes)
        except OSError as error:
            raise PackError(f"{path} cannot be packed: {error.strerror}.") from error
        if path in migrated:
            data = _json(migrated[path])
        clean, notes = scrubber.member(name, data)
        scrubbed += notes
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(clean)
    return tuple(scrubbed)


def _earlier(run: RunFolder) -> Manifest:
    """Return the manifest of a run that was unpacked, an empty one of others: its notes of masking stay."""
    path = run.path / MANIFEST
    if path.is_file():
        return decode_manifest(read_regular(path, LARGEST_MANIFEST_BYTES))
    return Manifest(SCHEMA, "", "", 0.0, "", "", RUN_SCHEMA, (), (), ())


def _measured(folder: Path, recompute: bool) -> TrialRecord:
    """Return the record of a copied trial with the figure that follows from its events, and write that."""
    name = f"{folder.parent.name}/{folder.name}"
    record = read_record(folder, read_spec(folder))
    if record.figure is None:
        return record
    try:
        figure = recomputed_figure(folder, record)
    except NOT_AS_WRITTEN as error:
        raise PackError(
            f"{name} cannot be packed: its figure does not follow from its events: {error}"
        ) from error
    stored = read_object(folder / FIGURE)
    differences = list(figure_differences(stored["figure"], figure))
    if differences and not recompute:
        place, before, after = differences[0]
        raise PackError(
            f"{name} cannot be packed: {place} of its {FIGURE} is {before}, but {after} by its events; "
            "was it changed, or measured by another version? --recompute packs what follows from the events."
        )
    (folder / FIGURE).write_bytes(_json({**stored, "figure": typed_json.encode(figure)}))
    return replace(record, figure=figure)


def _json(plain: Any) -> bytes:
    return json_text(plain).encode("utf-8", "backslashreplace")


def _manifest(
    run: RunFolder, copy: RunFolder, digests: Mapping[str, MemberDigest], records: Iterable[TrialRecord]
) -> Manifest:
    info, of_trials = copy.info, trial_digests(digests)
    return Manifest(
        schema=SCHEMA,
        uuid=info.uuid or "",
        name=info.name,
        created=info.created,
        version=__version__,
        run_version=info.version,
        run_schema=RUN_SCHEMA,
        members=tuple(digests.values()),
        trials=tuple(
            PackedTrial(
                uuid=record.spec.uuid or "",
                case=record.spec.case,
                repeat=record.spec.repeat,
                outcome=record.outcome,
                digest=of_trials[f"{record.spec.case}/{record.spec.repeat:02d}"],
                **figure_numbers(record.figure),
            )
            for record in records
        ),
        scrubbed=(),
        left_out=folders_left_out(run.path) or _earlier(run).left_out,
    )


def _write(out: Path, heading: Mapping[str, bytes], files: Mapping[str, Path]) -> PackedRun:
    """Write beside `out`, verify what was written, and only then put it in place."""
    out = out.absolute()
    try:
        with whole_file(out) as file:
            tarball.write(file, _contents(heading, files))
            file.flush()
            part = Path(file.name)
            verification = verify(part)
            if not verification.verified:
                raise PackError(f"{out} cannot be made: {verification.differences[0].sentence}")
            digest = _digest(out.name, part)
    except OSError as error:
        raise PackError(f"{out} cannot be written: {error.strerror}.") from error
    return PackedRun(out, digest.bytes, digest.sha256, verification)


def _contents(heading: Mapping[str, bytes], files: Mapping[str, Path]) -> Iterator[tuple[str, BinaryIO, int]]:
    for name, data in heading.items():
        yield name, io.BytesIO(data), len(data)
    for name, path in files.items():
        with open_regular(path) as file:
            yield name, file, path.stat().st_size


def _digest(name: str, path: Path) -> MemberDigest:
    digest, size = sha256_of(path)
    return MemberDigest(name, size, digest)
