"""Unpacking into a new folder: only members that a run has, each where it belongs, or nothing at all."""

from __future__ import annotations

import hashlib
import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from trainmark.store.manifest import (
    MANIFEST,
    SIGNATURE,
    Manifest,
    MemberDigest,
    PackError,
    decode_manifest,
    is_member,
)
from trainmark.store.run import RunFolder
from trainmark.store.tarball import LIMITS, PackMember, UnpackLimits, read_members

LARGEST_MANIFEST_BYTES = 64 << 20
LARGEST_SIGNATURE_BYTES = 64 << 10


@dataclass(frozen=True)
class UnpackedRun:
    """What a packed file holds; `digests` are those of its members, whatever the manifest says of them."""

    run: RunFolder
    manifest: Manifest
    manifest_bytes: bytes
    signature: bytes | None
    digests: Mapping[str, MemberDigest]


def unpack(file: Path, folder: Path, *, limits: UnpackLimits = LIMITS) -> RunFolder:
    """Make the run's folder, with the manifest in it; PackError, and no folder, where a member is wrong.

    Members must have the digests of the manifest; `trainmark verify` is what recomputes the figures.
    """
    folder = folder.absolute()
    if folder.exists() or folder.is_symlink():
        raise PackError(f"{folder} exists; unpack into another folder.")
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=f".{folder.name}-") as place:
        unpacked = unpack_unchecked(file, Path(place) / "run", limits)
        if wrong := changed_members(unpacked):
            raise PackError(f"{file}: {wrong[0][1]}; `trainmark verify` names all that was changed.")
        (unpacked.run.path / MANIFEST).write_bytes(unpacked.manifest_bytes)
        if unpacked.signature is not None:
            (unpacked.run.path / SIGNATURE).write_bytes(unpacked.signature)
        unpacked.run.path.rename(folder)
    return RunFolder(folder)


def unpack_unchecked(file: Path, folder: Path, limits: UnpackLimits = LIMITS) -> UnpackedRun:
    """Unpack into a folder that is made, whatever the digests; PackError where this is no packed run."""
    folder.mkdir()
    try:
        return _unpacked(file, folder, limits)
    except OSError as error:
        shutil.rmtree(folder, ignore_errors=True)
        raise PackError(f"{file} cannot be unpacked: {error.strerror}.") from error


def read_manifest(file: Path, limits: UnpackLimits = LIMITS) -> Manifest:
    """Return the manifest and read no further; PackError where there is none. Nothing is verified."""
    for member in read_members(file, limits):
        return _manifest(_manifest_bytes(member, file), file)
    raise PackError(f"{file} is no packed run: it is empty.")


def _unpacked(file: Path, folder: Path, limits: UnpackLimits) -> UnpackedRun:
    manifest_bytes, signature = b"", None
    digests: dict[str, MemberDigest] = {}
    for number, member in enumerate(read_members(file, limits)):
        if number == 0:
            manifest_bytes = _manifest_bytes(member, file)
        elif number == 1 and member.name == SIGNATURE:
            signature = _small(member, LARGEST_SIGNATURE_BYTES)
        elif not is_member(member.name):
            raise PackError(f"{file}: a run has no file '{member.name:.200}'; it was not unpacked.")
        elif member.name in digests:
            raise PackError(f"{file} has the member {member.name} twice; it was not unpacked.")
        else:
            digests[member.name] = _write(member, folder / member.name)
    if not manifest_bytes:
        raise PackError(f"{file} is no packed run: it is empty.")
    manifest = _manifest(manifest_bytes, file)
    return UnpackedRun(RunFolder(folder), manifest, manifest_bytes, signature, digests)


def _manifest_bytes(member: PackMember, file: Path) -> bytes:
    if member.name != MANIFEST:
        raise PackError(f"{file} is no packed run: its first member is not {MANIFEST}.")
    return _small(member, LARGEST_MANIFEST_BYTES)


def _manifest(data: bytes, file: Path) -> Manifest:
    try:
        return decode_manifest(data)
    except PackError as error:
        raise PackError(f"{file}: {error}") from error


def changed_members(unpacked: UnpackedRun) -> list[tuple[str, str]]:
    """Return each member that is not as the manifest says, with what is wrong with it."""
    wrong = []
    listed: dict[str, MemberDigest] = {}
    for expected in unpacked.manifest.members:
        if expected.name in listed:
            wrong.append((expected.name, f"{MANIFEST} lists the member {expected.name} twice"))
        listed[expected.name] = expected
    for name, expected in listed.items():
        actual = unpacked.digests.get(name)
        if actual is None:
            wrong.append((name, f"the member {name} is missing"))
        elif actual != expected:
            wrong.append((name, f"the member {name} was changed"))
    for name in unpacked.digests.keys() - listed.keys():
        wrong.append((name, f"the member {name} was added"))
    return wrong


def _small(member: PackMember, limit: int) -> bytes:
    if member.size > limit:
        raise PackError(f"{member.name} is larger than {limit >> 10:,} KiB; this is no packed run.")
    return b"".join(member.content)


def _write(member: PackMember, path: Path) -> MemberDigest:
    path.parent.mkdir(parents=True, exist_ok=True)
    digest = hashlib.sha256()
    with path.open("xb") as file:
        for piece in member.content:
            digest.update(piece)
            file.write(piece)
    return MemberDigest(member.name, member.size, digest.hexdigest())
