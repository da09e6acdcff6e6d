"""Packed files that lie: made by somebody who knows the format."""

from __future__ import annotations

import gzip
import io
import json
import tarfile
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from trainmark.store.manifest import MANIFEST, MemberDigest, decode_manifest, encode_manifest
from trainmark.store.unpack import unpack_unchecked
from trainmark.store.verify import trial_digests


def members(file: Path) -> dict[str, bytes]:
    with tarfile.open(file) as archive:
        return {info.name: archive.extractfile(info).read() for info in archive.getmembers()}


def repacked(file: Path, contents: Mapping[str, bytes]) -> Path:
    """Write these members as a packed file, whatever the manifest says of them."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for name, data in contents.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    file.write_bytes(gzip.compress(out.getvalue(), mtime=0))
    return file


def with_link(file: Path, contents: Mapping[str, bytes]) -> Path:
    """Write the members, and a symbolic link out of the folder."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for name, data in contents.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
        link = tarfile.TarInfo("environment.json")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
        archive.addfile(link)
    file.write_bytes(gzip.compress(out.getvalue(), mtime=0))
    return file


def forged(source: Path, out: Path, change: Callable[[dict[str, Any]], None], manifest_too: bool) -> Path:
    """Change every figure.json, and mend all digests, and with `manifest_too` the manifest's figures."""
    contents = members(source)
    throughputs = {}
    for name in [name for name in contents if name.endswith("/figure.json")]:
        plain = json.loads(contents[name])
        change(plain)
        throughputs[name.split("/")[-2]] = plain["figure"]["throughput"]
        contents[name] = json.dumps(plain).encode()
    repacked(out, contents)
    digests: dict[str, MemberDigest] = dict(unpack_unchecked(out, out.with_suffix(".folder")).digests)
    manifest, of_trials = decode_manifest(contents[MANIFEST]), trial_digests(digests)
    trials = tuple(replace(trial, digest=of_trials[trial.name]) for trial in manifest.trials)
    if manifest_too:
        trials = tuple(replace(trial, throughput=throughputs[f"{trial.repeat:02d}"]) for trial in trials)
    mended = replace(manifest, members=tuple(digests.values()), trials=trials)
    return repacked(out, {**contents, MANIFEST: encode_manifest(mended)})
