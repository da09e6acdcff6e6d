"""Files that lie, lead elsewhere, explode or are cut: refused in one sentence, and nothing is written."""

from __future__ import annotations

import gzip
import io
import json
import os
import random
import tarfile
import zlib
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from measured_runs import CASE, edited, forged, members, repacked

from trainmark.store.manifest import MANIFEST, PackError
from trainmark.store.tarball import BLOCK, LIMITS, UnpackLimits, read_members
from trainmark.store.unpack import unpack
from trainmark.store.verify import verify

MUTATIONS = 80  # of each layer
ODD = (b"\0\0\0\0", b"\xff\xff\xff\xff", b"1e99", b'"":0', b"-999")


@pytest.fixture(scope="module")
def manifest(file) -> bytes:
    return members(file)[MANIFEST]


def archive(path: Path, *infos: tarfile.TarInfo, first: bytes, data: bytes = b"x") -> Path:
    """Write a manifest, then members with these headers."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        head = tarfile.TarInfo(MANIFEST)
        head.size = len(first)
        tar.addfile(head, io.BytesIO(first))
        for info in infos:
            info.size = len(data) if info.isreg() else 0
            tar.addfile(info, io.BytesIO(data))
    path.write_bytes(gzip.compress(out.getvalue()))
    return path


def member(name: str, kind: bytes = tarfile.REGTYPE, target: str = "") -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type, info.linkname = kind, target
    return info


def refused(path: Path, folder: Path, limits: UnpackLimits = LIMITS) -> str:
    """Return the sentence of a refusal, after which nothing is left in the folder."""
    folder.mkdir()
    with pytest.raises(PackError) as refusal:
        unpack(path, folder / "run", limits=limits)
    assert list(folder.iterdir()) == []
    return str(refusal.value)


@pytest.mark.parametrize(
    "name",
    [
        "../escaped",
        "/etc/cron.d/escaped",
        "trials/../../escaped",
        f"trials/{CASE}/01/../../../../escaped",
        f"trials/{CASE}/01/events/../../../../../escaped",
        "trials/../01/trial.json",
        "trials/./01/trial.json",
        f"trials/{CASE}/01//trial.json",
        f"./trials/{CASE}/01/trial.json",
        f"trials/{CASE}\\..\\..\\x/01/trial.json",
        f"trials/{CASE}\x1b[31m/01/trial.json",
        f"trials/{CASE}/01/events/rank0.jsonl/x",
        f"trials/{CASE}/01",
        "code/trainmark/probe.py",
        ".lock",
        "run.json/",
        "",
    ],
)
def test_a_name_that_a_run_does_not_have_is_refused(manifest, tmp_path, name):
    path = archive(tmp_path / "hostile", member(name), first=manifest)
    assert refused(path, tmp_path / "place").endswith("it was not unpacked.")
    assert not list(tmp_path.rglob("*escaped*"))


@pytest.mark.parametrize(
    ("kind", "word"),
    [
        (tarfile.SYMTYPE, "a symbolic link"),
        (tarfile.LNKTYPE, "a hard link"),
        (tarfile.CHRTYPE, "a device"),
        (tarfile.BLKTYPE, "a device"),
        (tarfile.FIFOTYPE, "a FIFO"),
        (tarfile.DIRTYPE, "a folder"),
        (tarfile.CONTTYPE, "no plain file"),
        (tarfile.XHDTYPE, "no plain file"),
        (tarfile.GNUTYPE_SPARSE, "no plain file"),
        (tarfile.GNUTYPE_LONGNAME, "no plain file"),
    ],
)
def test_what_is_no_plain_file_is_refused(manifest, tmp_path, kind, word):
    path = archive(tmp_path / "hostile", member("suite.yaml", kind, "/etc/passwd"), first=manifest)
    assert f"the member 'suite.yaml' is {word}" in refused(path, tmp_path / "place")


def test_a_member_that_comes_twice_is_refused(manifest, tmp_path):
    path = archive(tmp_path / "hostile", member("suite.yaml"), member("suite.yaml"), first=manifest)
    assert "has the member suite.yaml twice" in refused(path, tmp_path / "place")


def test_a_bomb_is_refused_before_it_is_unpacked(manifest, tmp_path):
    compressor = zlib.compressobj(9, zlib.DEFLATED, 31)
    head, bomb = tarfile.TarInfo(MANIFEST), tarfile.TarInfo(f"trials/{CASE}/01/logs/rank0.log")
    head.size, bomb.size = len(manifest), 1 << 30
    parts = [head.tobuf(tarfile.USTAR_FORMAT), manifest, bytes(-len(manifest) % BLOCK)]
    parts += [bomb.tobuf(tarfile.USTAR_FORMAT)]
    packed = [compressor.compress(part) for part in parts]
    packed += [compressor.compress(bytes(1 << 20)) for _ in range(64)]
    path = tmp_path / "bomb"
    path.write_bytes(b"".join([*packed, compressor.flush()]))
    assert path.stat().st_size < 2 << 20
    assert "unpacks to more than 300 times its size" in refused(path, tmp_path / "place")


@pytest.mark.parametrize(
    ("limits", "word"),
    [
        (UnpackLimits(members=3), "more than 3 members"),
        (UnpackLimits(total_bytes=20 << 10), "unpacks to more than 0 MiB"),
        (UnpackLimits(member_bytes=500), "is larger than 0 MiB"),
    ],
)
def test_a_limit_holds(file, tmp_path, limits, word):
    assert word in refused(file, tmp_path / "place", limits)


def test_a_size_that_the_header_does_not_keep_is_cut_short(manifest, tmp_path):
    head, long = tarfile.TarInfo(MANIFEST), tarfile.TarInfo("suite.yaml")
    head.size, long.size = len(manifest), 1 << 29
    data = head.tobuf(tarfile.USTAR_FORMAT) + manifest + bytes(-len(manifest) % BLOCK)
    path = tmp_path / "short"
    path.write_bytes(gzip.compress(data + long.tobuf(tarfile.USTAR_FORMAT) + b"few"))
    assert "is cut short" in refused(path, tmp_path / "place")


def test_what_follows_the_archive_is_refused(file, tmp_path):
    for number, rest in enumerate((b"x", gzip.compress(b"more"), bytes(8))):
        path = tmp_path / f"longer{number}"
        path.write_bytes(file.read_bytes() + rest)
        assert "something follows" in refused(path, tmp_path / f"place{number}")


def test_a_second_archive_behind_the_first_is_refused(file, tmp_path):
    path = tmp_path / "two"
    path.write_bytes(gzip.compress(2 * gzip.decompress(file.read_bytes())))
    assert "something follows the last member" in refused(path, tmp_path / "place")


def test_a_fifo_is_refused_at_once(tmp_path):
    os.mkfifo(tmp_path / "fifo")
    with pytest.raises(PackError, match="no regular file"):
        verify(tmp_path / "fifo")


@pytest.mark.parametrize("manifest_text", ["", "[]", "{}", "null", "[" * 100_000, '{"schema": 1}', "\xff"])
def test_a_manifest_that_is_none_is_refused(file, tmp_path, manifest_text):
    contents = {**members(file), MANIFEST: manifest_text.encode("latin-1")}
    path = repacked(tmp_path / "hostile", contents)
    with pytest.raises(PackError, match=r"manifest\.json|no packed run"):
        verify(path)


def test_a_manifest_of_a_newer_schema_asks_for_an_upgrade(file, tmp_path):
    contents = members(file)
    newer = {**json.loads(contents[MANIFEST]), "schema": 99}
    path = repacked(tmp_path / "newer", {**contents, MANIFEST: json.dumps(newer).encode()})
    with pytest.raises(PackError, match="schema 99, newer than 1; upgrade Trainmark"):
        verify(path)


@pytest.mark.parametrize("identity", ["", "x", "../../up", "'; DROP TABLE runs;--", "A" * 36])
def test_a_uuid_that_is_none_is_refused(file, tmp_path, identity):
    """Whoever stores packed runs may trust that a UUID is one."""
    path = repacked(tmp_path / "hostile", edited(members(file), MANIFEST, "uuid", value=identity))
    with pytest.raises(PackError, match="is no UUID"):
        verify(path)


def test_a_folder_that_exists_is_left_alone(file, tmp_path):
    (tmp_path / "run").mkdir()
    with pytest.raises(PackError, match="exists; unpack into another folder"):
        unpack(file, tmp_path / "run")
    assert list((tmp_path / "run").iterdir()) == []


def test_a_changed_member_is_not_unpacked(file, tmp_path):
    path = repacked(tmp_path / "changed", {**members(file), "suite.yaml": b"name: other\n"})
    assert "the member suite.yaml was changed" in refused(path, tmp_path / "place")


def test_a_file_cut_anywhere_is_refused(file, tmp_path):
    data, path = file.read_bytes(), tmp_path / "cut"
    for length in range(0, len(data), max(1, len(data) // 100)):
        path.write_bytes(data[:length])
        with pytest.raises(PackError):
            for each in read_members(path):
                b"".join(each.content)


@given(st.binary(max_size=2000))
@settings(max_examples=60)
def test_random_bytes_are_refused(tmp_path_factory, data):
    path = tmp_path_factory.mktemp("random") / "file"
    path.write_bytes(data)
    with pytest.raises(PackError):
        verify(path)


def mutated(rng: random.Random, data: bytes) -> bytes:
    changed = bytearray(data)
    for _ in range(rng.randint(1, 6)):
        place, kind = rng.randrange(len(changed) + 1), rng.randrange(4)
        if kind == 0 and place < len(changed):
            changed[place] ^= 1 << rng.randrange(8)
        elif kind == 1:
            del changed[place : place + rng.randint(1, 600)]
        elif kind == 2:
            changed[place:place] = bytes(rng.randrange(256) for _ in range(rng.randint(1, 40)))
        else:
            changed[place : place + 4] = rng.choice(ODD)
    return bytes(changed)


@pytest.mark.parametrize("layer", [gzip.decompress, bytes], ids=["tar", "gzip"])
def test_a_mutated_file_is_refused_or_its_differences_are_named(file, tmp_path, layer):
    """Mutations of the tar leave the gzip whole, so that they reach headers, JSON and events."""
    rng, data, path = random.Random(22), layer(file.read_bytes()), tmp_path / "mutated"
    endings = {"refused": 0, "differs": 0}
    for _ in range(MUTATIONS):
        changed = mutated(rng, data)
        path.write_bytes(changed if layer is bytes else gzip.compress(changed, 1))
        try:
            ending = "verified" if verify(path).verified else "differs"
        except PackError as error:
            assert "\n" not in str(error)
            ending = "refused"
        if ending == "verified":  # only what no digest covers: an unused field of a header
            assert members(path) == members(file)
        endings[ending] = endings.get(ending, 0) + 1
    assert endings["refused"] + endings["differs"] > MUTATIONS * 0.8


def test_a_member_of_any_bytes_is_named_with_its_differences(file, tmp_path):
    """The archive is whole and its digests are mended, so that every reader of a member is reached."""
    rng, contents = random.Random(22), members(file)
    names = [name for name in contents if name != MANIFEST]
    for number in range(MUTATIONS // 2):
        name = rng.choice(names)
        path = repacked(tmp_path / "mutated", {**contents, name: mutated(rng, contents[name])})
        verification = verify(path)
        assert name in {difference.member for difference in verification.differences}, name
        mended = verify(forged(path, tmp_path / f"unpacked{number}"))
        assert all(difference.sentence.count("\n") == 0 for difference in mended.differences)
