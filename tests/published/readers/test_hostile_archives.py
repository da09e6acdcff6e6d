"""Archives made to mislead: a bad member costs itself, claims are not trusted, limits hold for the whole."""

from __future__ import annotations

import gzip
import io
import lzma
import struct
import tarfile
import zipfile
from pathlib import Path

import pytest

from trainmark.base import streams
from trainmark.base.archives import unpacked
from trainmark.base.streams import SourceError, SourceRefusal, UnpackLimits
from trainmark.logs import input as log_input
from trainmark.logs import read
from trainmark.logs.input import sources
from trainmark.logs.logged_run import LoggedRun
from trainmark.logs.read import ParsedLog
from trainmark.logs.recognition import Recognition, formats

TEXT = b"iter 1\niter 2\n"
TERABYTE = 1 << 40


def contents(*paths) -> dict[str, bytes | str]:
    """Each source's content, or the sentence by which it or its content was refused."""
    result: dict[str, bytes | str] = {}
    for source in sources([str(path) for path in paths]):
        if isinstance(source, SourceRefusal):
            result[source.name] = source.sentence
            continue
        try:
            result[source.name] = b"".join(source.chunks)
        except SourceError as error:
            result[source.name] = str(error)
    return {name.rpartition("!")[2].rpartition("/")[2]: content for name, content in result.items()}


def member(name: str, content: bytes, **headers: str) -> bytes:
    """One member as bytes, without the end of an archive."""
    info = tarfile.TarInfo(name)
    info.size, info.pax_headers = len(content), headers
    return info.tobuf(tarfile.PAX_FORMAT) + content + b"\0" * (-len(content) % 512)


def with_checksum(header: bytes) -> bytes:
    blank = header[:148] + b" " * 8 + header[156:]
    return header[:148] + b"%06o\0 " % sum(blank) + header[156:]


def zip_of(path, members: dict[str, bytes], method=zipfile.ZIP_DEFLATED):
    with zipfile.ZipFile(path, "w", method) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return path


def patched(path, name: bytes, local: int, central: int, value: bytes):
    """Change a field of one member in both of its headers."""
    data = bytearray(path.read_bytes())
    at = data.find(name) - 30
    data[at + local : at + local + len(value)] = value
    at = data.rfind(name) - 46
    data[at + central : at + central + len(value)] = value
    path.write_bytes(data)


THREE = {"a.log": TEXT, "bad.log": TEXT * 9, "c.log": TEXT}


@pytest.mark.parametrize(
    ("local", "central", "value", "sentence"),
    [
        (8, 10, struct.pack("<H", 9), "compression method 9 (Deflate64) is not supported"),
        (8, 10, struct.pack("<H", 97), "compression method 97 is not supported"),
        (6, 8, struct.pack("<H", 1), "this member is encrypted"),
        (6, 8, struct.pack("<H", 0x20), "it is a patch"),
        (0, 42, b"PK\7\7", "there is no member where the directory says"),
        (14, 16, b"\1\2\3\4", "its content differs from its checksum"),
        (22, 24, b"\1\0\0\0", "its size is not the one in the directory"),
        (18, 20, b"\3\0\0\0", "it ends before its end mark"),
    ],
)
def test_a_bad_member_of_a_zip_is_named_and_those_beside_it_are_read(
    tmp_path, local, central, value, sentence
):
    path = zip_of(tmp_path / "x.zip", THREE)
    patched(path, b"bad.log", local, central, value)
    answers = contents(path)
    assert answers["a.log"] == answers["c.log"] == TEXT
    assert sentence in str(answers["bad.log"])


@pytest.mark.parametrize(
    ("local", "central", "value"), [(4, 6, b"\xff\0"), (6, 8, b"\0\x08")], ids=["version", "utf8"]
)
def test_a_member_whose_header_says_more_than_is_needed_is_read(tmp_path, local, central, value):
    path = zip_of(tmp_path / "x.zip", THREE)
    patched(path, b"bad.log", local, central, value)
    assert contents(path)["bad.log"] == TEXT * 9


@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_every_method_that_python_writes_is_read(tmp_path, method):
    assert contents(zip_of(tmp_path / "x.zip", THREE, method)) == THREE


def test_a_zip_with_wide_sizes_and_something_before_it_is_read(tmp_path):
    with (
        zipfile.ZipFile(tmp_path / "x.zip", "w") as archive,
        archive.open("a.log", "w", force_zip64=True) as a,
    ):
        a.write(TEXT)
    path = tmp_path / "y.zip"
    path.write_bytes(b"PK\x03\x04before" + (tmp_path / "x.zip").read_bytes())
    assert contents(tmp_path / "x.zip") == contents(path) == {"a.log": TEXT}


def test_a_member_that_asks_for_gigabytes_of_memory_is_refused(tmp_path):
    path = zip_of(tmp_path / "x.zip", THREE, zipfile.ZIP_LZMA)
    data = bytearray(path.read_bytes())
    at = data.find(b"bad.log") + len(b"bad.log") + 5  # the dictionary, behind four bytes and the properties
    data[at : at + 4] = struct.pack("<I", 0xFFFFFFFF)
    path.write_bytes(data)
    answers = contents(path)
    assert "could not be read" in str(answers["bad.log"])
    assert answers["c.log"] == TEXT


def test_members_share_one_limit(tmp_path, monkeypatch):
    monkeypatch.setattr(log_input, "LIMITS", UnpackLimits(ratio_from_bytes=4 << 20))
    path = zip_of(tmp_path / "x.zip", {f"{n}.log": b"\n" * (1 << 20) for n in range(9)})
    answers = contents(path)
    assert sum(isinstance(content, bytes) for content in answers.values()) == 4
    assert "unpacks to more than 250 times its size" in str(answers["4.log"])


def test_members_of_archives_within_share_it_too(tmp_path, monkeypatch):
    monkeypatch.setattr(log_input, "LIMITS", UnpackLimits(ratio_from_bytes=4 << 20))
    packed = gzip.compress(b"\n" * (1 << 20))
    path = tmp_path / "x.tar"
    path.write_bytes(b"".join(member(f"{n}.gz", packed) for n in range(9)))
    answers = contents(path)
    assert sum(isinstance(content, bytes) for content in answers.values()) == 4
    assert "the rest is not read" in str(answers["4.gz"])


def test_a_lying_size_in_a_zip_buys_nothing(tmp_path, monkeypatch):
    monkeypatch.setattr(log_input, "LIMITS", UnpackLimits(ratio_from_bytes=1 << 20))
    path = zip_of(tmp_path / "x.zip", {"bad.log": b"\n" * (2 << 20)})
    patched(path, b"bad.log", 22, 24, b"\1\0\0\0")
    assert isinstance(contents(path)["bad.log"], str)


def test_members_are_counted_over_all_levels(tmp_path, monkeypatch):
    monkeypatch.setattr(log_input, "LIMITS", UnpackLimits(members=10))
    inner = zip_of(tmp_path / "i.zip", {f"{n}.log": TEXT for n in range(6)}).read_bytes()
    path = tmp_path / "x.tar"
    path.write_bytes(member("a.zip", inner) + member("b.zip", inner))
    answers = contents(path)
    assert any("more than 10 members" in str(content) for content in answers.values())


class Counting(io.BytesIO):
    """Counts how often it is asked for bytes."""

    reads = 0

    def read(self, size: int | None = -1, /) -> bytes:
        self.reads += 1
        return super().read(size)


def test_a_claimed_terabyte_is_not_walked_over():
    header = tarfile.TarInfo("big.log")
    header.size = TERABYTE
    stream = Counting(member("a.log", TEXT) + header.tobuf(tarfile.GNU_FORMAT) + b"x" * 2048)
    assert [source.name for source in unpacked("x", stream)] == ["x!a.log", "x!big.log", "x"]
    assert stream.reads < 100


def test_a_member_longer_than_its_archive_breaks_off_and_the_ones_before_are_read(tmp_path):
    header = tarfile.TarInfo("big.log")
    header.size = TERABYTE
    path = tmp_path / "x.tar"
    path.write_bytes(member("a.log", TEXT) + header.tobuf(tarfile.GNU_FORMAT) + b"x" * 2048)
    answers = contents(path)
    assert answers["a.log"] == TEXT
    assert "could not be read: the archive ends within it" in str(answers["big.log"])


def sparse_header(claimed: int) -> bytes:
    """An old GNU sparse member with a map block behind its header and 512 bytes of content."""
    info = tarfile.TarInfo("bad.log")
    info.size = 512
    header = bytearray(info.tobuf(tarfile.GNU_FORMAT))
    header[156:157] = tarfile.GNUTYPE_SPARSE
    header[482] = 1
    header[483:495] = b"%011o\0" % claimed
    return with_checksum(bytes(header)) + b"1" * 504 + b"\0" * 8 + b"x" * 512


@pytest.mark.parametrize(
    "bad",
    [
        sparse_header((1 << 33) - 1),
        member("bad.log", b"x" * 600, **{"GNU.sparse.major": "1", "GNU.sparse.minor": "0"}),
        member("bad.log", TEXT, **{"GNU.sparse.size": "nonsense", "GNU.sparse.map": "a,b"}),
    ],
    ids=["old", "pax 1.0", "bad numbers"],
)
def test_a_sparse_member_is_refused_and_the_rest_is_read(tmp_path, bad):
    path = tmp_path / "x.tar"
    path.write_bytes(member("a.log", TEXT) + bad + member("c.log", TEXT))
    answers = contents(path)
    assert answers["a.log"] == answers["c.log"] == TEXT
    assert "sparse files in archives are not read" in str(answers["bad.log"])


def test_a_size_that_is_no_number_costs_one_member(tmp_path):
    path = tmp_path / "x.tar"
    path.write_bytes(member("bad.log", TEXT, size="many") + member("c.log", TEXT))
    answers = contents(path)
    assert "its size is no number" in str(answers["bad.log"])
    assert answers["c.log"] == TEXT


def test_behind_a_damaged_header_the_next_member_is_found(tmp_path):
    bad = bytearray(member("bad.log", TEXT))
    bad[:4] = b"\xff" * 4
    path = tmp_path / "x.tar"
    path.write_bytes(member("a.log", TEXT) + bytes(bad) + member("c.log", TEXT))
    answers = contents(path)
    assert answers["a.log"] == answers["c.log"] == TEXT
    assert "the header of a member is damaged" in str(answers["x.tar"])


def test_a_header_of_megabytes_is_not_kept_in_memory(tmp_path):
    path = tmp_path / "x.tar"
    path.write_bytes(member("a.log", TEXT) + member("b.log", TEXT, comment="x" * (2 << 20)))
    answers = contents(path)
    assert answers["a.log"] == TEXT
    assert "a header of" in str(answers["x.tar"])


def test_long_names_are_whole_in_both_forms(tmp_path):
    name = "long/" * 60 + "name.log"
    for form in (tarfile.GNU_FORMAT, tarfile.PAX_FORMAT):
        with tarfile.open(tmp_path / "x.tar", "w", format=form) as archive:
            info = tarfile.TarInfo(name)
            info.size = len(TEXT)
            archive.addfile(info, io.BytesIO(TEXT))
        (source,) = sources([str(tmp_path / "x.tar")])
        assert source.name == f"{tmp_path / 'x.tar'}!{name}"


@pytest.mark.parametrize("pack", [gzip.compress, lzma.compress])
def test_packed_streams_one_behind_another_are_one_log(tmp_path, pack):
    path = tmp_path / "x.log"
    path.write_bytes(pack(TEXT) + pack(TEXT))
    assert contents(path) == {"x.log": TEXT * 2}


def test_an_xz_header_does_not_decide_how_much_memory_is_taken(tmp_path, monkeypatch):
    monkeypatch.setattr(streams, "MOST_XZ_MEMORY", 1 << 20)
    path = tmp_path / "x.log"
    path.write_bytes(lzma.compress(TEXT, preset=9))
    assert "Memory usage limit" in str(contents(path)["x.log"])


def test_an_input_that_breaks_a_reader_does_not_cost_the_others(tmp_path, monkeypatch):
    def read_runs(format, blocks, source):
        if source.endswith("bad.log"):
            raise IndexError("list index out of range")
        yield LoggedRun(source, format)

    monkeypatch.setattr(read, "read_runs", read_runs)
    monkeypatch.setattr(
        read, "recognize", lambda blocks, name: (Recognition(next(iter(formats().values())), 1, 1.0), blocks)
    )
    names = [str(tmp_path / name) for name in ("a.log", "bad.log", "c.log")]
    for name in names:
        Path(name).write_bytes(TEXT)
    first, second, third = read.parsed_logs(names)
    assert isinstance(first, ParsedLog)
    assert isinstance(third, ParsedLog)
    assert second == SourceRefusal(names[1], f"{names[1]}: could not be read: list index out of range.")
