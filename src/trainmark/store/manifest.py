"""`manifest.json`, the first member of a packed run: digests, figures, and what was scrubbed.

Beside it the names that a member may have, and the signature of the manifest by an SSH key (`ssh-keygen -Y`).
"""

from __future__ import annotations

import json
import re
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any

from trainmark.base import typed_json
from trainmark.base.errors import UserError
from trainmark.base.text import natural_key
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


def encode_manifest(manifest: Manifest) -> bytes:
    return (json.dumps(typed_json.encode(manifest), indent=1) + "\n").encode()


def decode_manifest(data: bytes) -> Manifest:
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


OF_RUN = (
    "run.json",
    "suite.yaml",
    "environment.json",
    "facts.json",
    "cluster.json",
    "nodes.json",
    "fabric.json",
    "light.json",
    "ended.json",
)
# A finished trial `01`, or an attempt set aside as `01.crashed-1`.
TRIAL = re.compile(
    r"trials/(?P<case>[^./\\\x00-\x1f\x7f][^/\\\x00-\x1f\x7f]{0,139})/"
    r"(?P<trial>[0-9]{2,9}(?:\.[a-z]{1,20}-[0-9]{1,6})?)/"
    r"(?P<file>trial\.json|figure\.json|environment\.json|samples\.jsonl"
    r"|events/rank[0-9]{1,9}\.jsonl|logs/rank[0-9]{1,9}\.log)"
)
# The code that ran, profiles and scripts; reports are made again from the rest.
LEFT_OUT = ("code", "explain", "scripts")


def is_member(name: str) -> bool:
    return name in OF_RUN or TRIAL.fullmatch(name) is not None


def members_of(run: Path) -> dict[str, Path]:
    """Return the files to pack by their names in the archive, in the order in which they are packed."""
    names = [name for name in _names(run) if is_member(name)]
    return {name: run / name for name in sorted(names, key=_order)}


def folders_left_out(run: Path) -> tuple[str, ...]:
    """Return what the run has of the folders of which nothing is packed."""
    return tuple(name for name in LEFT_OUT if (run / name).is_dir())


def trial_of(name: str) -> str | None:
    """Return `CASE/01` for a member of a finished trial or of an attempt; None for one of the run."""
    match = TRIAL.fullmatch(name)
    return f"{match['case']}/{match['trial']}" if match else None


def _names(run: Path) -> Iterator[str]:
    for path in (*run.glob("*"), *(run / "trials").rglob("*")):
        # A link may lead out of the folder.
        if path.is_file() and not path.is_symlink():
            yield path.relative_to(run).as_posix()


def _order(name: str) -> tuple[bool, object]:
    return name not in OF_RUN, natural_key(name)


NAMESPACE = "trainmark"
SECONDS = 120.0  # for a passphrase to be typed, or a hardware key to be touched
KEY = re.compile(r"SHA256:[A-Za-z0-9+/]{43}=?")


class SignatureState(str, Enum):
    UNSIGNED = "unsigned"
    VALID = "valid"
    """By a key of the allowed signers."""
    UNKNOWN_SIGNER = "unknown-signer"
    """Right, but by a key that the allowed signers do not have, or without a file of them."""
    INVALID = "invalid"


@dataclass(frozen=True)
class Signature:
    """`signer` is the principal in the allowed-signers file, `key` the fingerprint."""

    state: SignatureState
    signer: str | None = None
    key: str | None = None


UNSIGNED = Signature(SignatureState.UNSIGNED)


def sign_manifest(manifest: bytes, key: Path) -> bytes:
    """Return the signature; PackError where the key cannot be used. With a public key the SSH agent signs."""
    if not key.is_file():
        raise PackError(f"there is no key {key}; name the file of an SSH key, such as ~/.ssh/id_ed25519.")
    done = _ssh_keygen(manifest, "sign", "-f", str(key.absolute()), "-n", NAMESPACE)
    if done.returncode != 0 or not done.stdout:
        raise PackError(f"{key} cannot sign: {_reason(done)}.")
    return done.stdout


def check_signature(manifest: bytes, signature: bytes | None, allowed_signers: Path | None) -> Signature:
    """Return who signed the manifest; PackError where ssh-keygen or the allowed signers are missing."""
    if allowed_signers is not None and not allowed_signers.is_file():
        raise PackError(f"there is no file {allowed_signers} of allowed signers.")
    if signature is None:
        return UNSIGNED
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "signature"
        file.write_bytes(signature)
        whole = _ssh_keygen(manifest, "check-novalidate", "-n", NAMESPACE, "-s", str(file))
        if whole.returncode != 0:
            return Signature(SignatureState.INVALID)
        fingerprint = KEY.search(whole.stdout.decode(errors="replace"))
        key = fingerprint.group() if fingerprint else None
        if allowed_signers is None:
            return Signature(SignatureState.UNKNOWN_SIGNER, key=key)
        allowed = str(allowed_signers.absolute())
        named = _ssh_keygen(b"", "find-principals", "-s", str(file), "-f", allowed)
        for principal in named.stdout.decode(errors="replace").splitlines() if named.returncode == 0 else ():
            arguments = ("-f", allowed, "-I", principal, "-n", NAMESPACE, "-s", str(file))
            if _ssh_keygen(manifest, "verify", *arguments).returncode == 0:
                return Signature(SignatureState.VALID, principal, key)
    return Signature(SignatureState.UNKNOWN_SIGNER, key=key)


def _ssh_keygen(data: bytes, action: str, *arguments: str) -> subprocess.CompletedProcess[bytes]:
    try:
        return subprocess.run(
            ["ssh-keygen", "-Y", action, *arguments], input=data, capture_output=True, timeout=SECONDS
        )
    except FileNotFoundError as error:
        raise PackError("signatures need ssh-keygen; install OpenSSH 8.1 or later.") from error
    except subprocess.TimeoutExpired as error:
        raise PackError(f"ssh-keygen did not finish within {SECONDS:.0f} s; is its key locked?") from error


def _reason(done: subprocess.CompletedProcess[bytes]) -> str:
    lines = done.stderr.decode(errors="replace").strip().splitlines()
    return lines[-1].rstrip(".") if lines else f"ssh-keygen left with code {done.returncode}"
