"""Signatures of the manifest by an SSH key of the user: `ssh-keygen -Y`, namespace `trainmark`."""

from __future__ import annotations

import re
import subprocess
import tempfile
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from trainmark.pack.manifest import PackError

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


def sign(manifest: bytes, key: Path) -> bytes:
    """Return the signature; PackError where the key cannot be used. With a public key the SSH agent signs."""
    if not key.is_file():
        raise PackError(f"there is no key {key}; name the file of an SSH key, such as ~/.ssh/id_ed25519.")
    done = _ssh_keygen(manifest, "sign", "-f", str(key.absolute()), "-n", NAMESPACE)
    if done.returncode != 0 or not done.stdout:
        raise PackError(f"{key} cannot sign: {_reason(done)}.")
    return done.stdout


def check(manifest: bytes, signature: bytes | None, allowed_signers: Path | None) -> Signature:
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
