"""Where logs come from, and what is refused on the way."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import os
import sys
import tarfile
import zipfile

import pytest

from trainmark.base.archives import NamedStream
from trainmark.base.streams import SourceError, SourceRefusal, UnpackLimits
from trainmark.logs import input as log_input
from trainmark.logs.input import sources

TEXT = b"iter 1\niter 2\n"


def contents(*paths) -> dict[str, bytes | str]:
    """Each source's content, or the sentence by which it was refused."""
    return {
        source.name: source.sentence if isinstance(source, SourceRefusal) else b"".join(source.chunks)
        for source in sources([str(path) for path in paths])
    }


def tar_of(path, mode="w", **members: bytes):
    with tarfile.open(path, mode) as archive:
        for name, content in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    return path


def zip_of(path, members: dict[str, bytes]):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return path


@pytest.mark.parametrize("pack", [bytes, gzip.compress, bz2.compress, lzma.compress])
def test_a_file_is_read_whatever_it_is_packed_with_and_called(tmp_path, pack):
    path = tmp_path / "train.log"
    path.write_bytes(pack(TEXT))
    assert contents(path) == {str(path): TEXT}


def test_a_folder_gives_its_files_in_order_and_leaves_hidden_ones(tmp_path):
    for name in ("b/2.log", "b/1.log", "a.log", ".hidden", ".git/x"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(TEXT)
    assert list(contents(tmp_path)) == [str(tmp_path / name) for name in ("a.log", "b/1.log", "b/2.log")]


def test_a_glob_stands_for_what_it_matches(tmp_path):
    for name in ("r1.log", "r2.log", "r3.txt"):
        (tmp_path / name).write_bytes(TEXT)
    assert list(contents(tmp_path / "r*.log")) == [str(tmp_path / "r1.log"), str(tmp_path / "r2.log")]


def test_standard_input_is_a_dash(monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(gzip.compress(TEXT))))
    assert contents("-") == {"-": TEXT}


@pytest.mark.parametrize("mode", ["w", "w:gz", "w:bz2", "w:xz"])
def test_a_tar_archive_gives_its_members(tmp_path, mode):
    path = tar_of(tmp_path / "logs", mode, **{"1n8g/a.log": TEXT, "1n8g/b.log": b"other\n"})
    assert contents(path) == {f"{path}!1n8g/a.log": TEXT, f"{path}!1n8g/b.log": b"other\n"}


def test_a_zip_archive_gives_its_members(tmp_path):
    path = zip_of(tmp_path / "logs.zip", {"a.log": TEXT, "folder/": b"", "folder/b.log": TEXT})
    assert list(contents(path)) == [f"{path}!a.log", f"{path}!folder/b.log"]


def test_an_archive_in_an_archive_is_read_and_one_more_is_not(tmp_path):
    inner = zip_of(tmp_path / "inner.zip", {"a.log": TEXT})
    middle = tar_of(tmp_path / "middle.tar", **{"inner.zip": inner.read_bytes()})
    outer = zip_of(tmp_path / "outer.zip", {"middle.tar": middle.read_bytes()})
    assert contents(middle) == {f"{middle}!inner.zip!a.log": TEXT}
    assert "no deeper" in contents(outer)[f"{outer}!middle.tar!inner.zip"]


@pytest.mark.parametrize("path", ["../../etc/passwd", "/etc/passwd", "a/../../b", "C:\\x.log", "..\\x.log"])
def test_a_member_whose_path_leads_out_is_refused(tmp_path, path):
    for packed in (zip_of(tmp_path / "x.zip", {path: TEXT}), tar_of(tmp_path / "x.tar", **{path: TEXT})):
        (sentence,) = contents(packed).values()
        assert "leads out of the archive" in str(sentence)


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.CHRTYPE, tarfile.FIFOTYPE])
def test_links_and_devices_in_a_tar_are_refused_and_the_rest_is_read(tmp_path, kind):
    path = tmp_path / "x.tar"
    with tarfile.open(path, "w") as archive:
        link = tarfile.TarInfo("bad")
        link.type, link.linkname = kind, "/etc/passwd"
        archive.addfile(link)
        info = tarfile.TarInfo("good.log")
        info.size = len(TEXT)
        archive.addfile(info, io.BytesIO(TEXT))
    read = contents(path)
    assert "not followed" in str(read[f"{path}!bad"])
    assert read[f"{path}!good.log"] == TEXT


def test_a_link_in_a_zip_is_refused(tmp_path):
    path = tmp_path / "x.zip"
    with zipfile.ZipFile(path, "w") as archive:
        link = zipfile.ZipInfo("bad")
        link.create_system, link.external_attr = 3, 0o120777 << 16
        archive.writestr(link, "/etc/passwd")
    assert "not followed" in str(contents(path)[f"{path}!bad"])


def test_a_zip_bomb_is_refused_by_what_it_declares(tmp_path, monkeypatch):
    monkeypatch.setattr(log_input, "LIMITS", UnpackLimits(ratio_from_bytes=1 << 20))
    path = zip_of(tmp_path / "x.zip", {"bomb": b"\0" * (8 << 20)})
    assert "unpacks to more than" in str(contents(path)[f"{path}!bomb"])


def test_a_gzip_bomb_is_refused_while_it_unpacks(tmp_path, monkeypatch):
    monkeypatch.setattr(log_input, "LIMITS", UnpackLimits(ratio_from_bytes=1 << 20))
    path = tmp_path / "x.gz"
    path.write_bytes(gzip.compress(b"\0" * (32 << 20)))
    every = sources([str(path)])
    source = next(every)
    assert isinstance(source, NamedStream)
    with pytest.raises(SourceError, match="unpacks to more than"):
        list(source.chunks)


def test_an_archive_of_too_many_members_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(log_input, "LIMITS", UnpackLimits(members=2))
    path = zip_of(tmp_path / "x.zip", {f"{i}.log": TEXT for i in range(3)})
    assert "more than 2 members" in str(contents(path)[str(path)])


@pytest.mark.parametrize("content", [b"", b"\n", b" \n\n"])
def test_an_empty_file_is_said_to_be_empty(tmp_path, content):
    path = tmp_path / "x.log"
    path.write_bytes(content)
    assert contents(path) == {str(path): f"{path}: the file is empty."}


def test_what_is_not_there_is_said_not_to_be(tmp_path):
    path = tmp_path / "x.log"
    assert contents(path) == {str(path): f"{path}: there is no such file or folder."}


def test_a_pipe_is_no_log_and_is_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    assert "no regular file" in str(contents(tmp_path / "pipe")[str(tmp_path / "pipe")])


def test_a_packed_file_cut_short_is_said_to_break_off(tmp_path):
    path = tmp_path / "x.gz"
    path.write_bytes(gzip.compress(os.urandom(100_000))[:50_000])
    every = sources([str(path)])
    source = next(every)
    assert isinstance(source, NamedStream)
    with pytest.raises(SourceError, match="could not be read: it ends before its end mark"):
        list(source.chunks)


def test_a_damaged_zip_is_refused(tmp_path):
    path = tmp_path / "x.zip"
    path.write_bytes(b"PK\x03\x04" + b"junk" * 200)
    assert "could not be read: the end of the zip archive is missing" in str(contents(path)[str(path)])
