"""Signatures by ssh-keygen, checked against a file of allowed signers."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest
from measured_runs import edited, members, repacked

from trainmark.store.archive import pack, verify
from trainmark.store.manifest import MANIFEST, SIGNATURE, PackError, SignatureState

pytestmark = pytest.mark.skipif(shutil.which("ssh-keygen") is None, reason="needs ssh-keygen (OpenSSH)")


def new_key(path: Path) -> Path:
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "x", "-f", str(path)], check=True)
    return path


@pytest.fixture(scope="module")
def keys(tmp_path_factory) -> Path:
    """`ada` is an allowed signer, `eve` is not; neither is `ada` for another namespace."""
    folder = tmp_path_factory.mktemp("keys")
    for name in ("ada", "eve"):
        new_key(folder / name)
    public = (folder / "ada.pub").read_text()
    (folder / "allowed").write_text(f'# the team\nada@example.org namespaces="trainmark" {public}')
    (folder / "other-namespace").write_text(f'ada@example.org namespaces="git" {public}')
    return folder


@pytest.fixture(scope="module")
def signed(run, keys, tmp_path_factory) -> Path:
    return pack(run, tmp_path_factory.mktemp("signed") / "signed.trainmark", key=keys / "ada").path


def test_an_allowed_signer_is_named(signed, keys):
    verification = verify(signed, keys / "allowed")
    assert verification.verified
    assert (verification.signature.state, verification.signature.signer) == (
        SignatureState.VALID,
        "ada@example.org",
    )
    assert verification.signature.key.startswith("SHA256:")


def test_signing_twice_gives_the_same_bytes(run, signed, keys, tmp_path):
    assert pack(run, tmp_path / "again", key=keys / "ada").path.read_bytes() == signed.read_bytes()


def test_without_allowed_signers_a_signature_is_of_an_unknown_signer(signed):
    verification = verify(signed)
    assert verification.verified and verification.signature.state is SignatureState.UNKNOWN_SIGNER


@pytest.mark.parametrize(("signer", "allowed"), [("eve", "allowed"), ("ada", "other-namespace")])
def test_a_key_that_is_not_allowed_does_not_verify(run, keys, tmp_path, signer, allowed):
    packed = pack(run, tmp_path / "signed", key=keys / signer)
    verification = verify(packed.path, keys / allowed)
    assert verification.signature.state is SignatureState.UNKNOWN_SIGNER
    assert "is of no allowed signer" in verification.differences[0].sentence


def test_an_unsigned_file_does_not_verify_where_signers_are_given(file, keys):
    (difference,) = verify(file, keys / "allowed").differences
    assert difference.sentence == f"{SIGNATURE}: the file is not signed, and allowed signers were given."


def test_a_manifest_that_was_changed_has_no_valid_signature(signed, keys, tmp_path):
    contents = edited(members(signed), MANIFEST, "scrubbed", value=[])
    plain = json.loads(contents[MANIFEST])
    contents[MANIFEST] = json.dumps({**plain, "left_out": ["code"]}).encode()
    verification = verify(repacked(tmp_path / "changed", contents), keys / "allowed")
    assert verification.signature.state is SignatureState.INVALID
    assert f"{SIGNATURE}: the signature is not of this manifest.json." in [
        difference.sentence for difference in verification.differences
    ]


@pytest.mark.parametrize("signature", [b"", b"\0" * 100, b"-----BEGIN SSH SIGNATURE-----\nAAAA\n"])
def test_a_signature_that_is_none_is_invalid(signed, tmp_path, signature):
    path = repacked(tmp_path / "broken", {**members(signed), SIGNATURE: signature})
    assert verify(path).signature.state is SignatureState.INVALID


def test_a_file_that_is_no_key_is_one_sentence(run, tmp_path):
    (tmp_path / "no-key").write_text("x")
    (tmp_path / "no-key").chmod(0o600)
    with pytest.raises(PackError, match="no-key cannot sign: "):
        pack(run, tmp_path / "out", key=tmp_path / "no-key")


def test_a_missing_file_of_allowed_signers_is_one_sentence(signed, tmp_path):
    with pytest.raises(PackError, match=r"there is no file .*nobody of allowed signers"):
        verify(signed, tmp_path / "nobody")
