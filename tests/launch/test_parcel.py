"""A folder as it is sent to nodes: named by its content, whoever wrote it and whenever."""

import hashlib
import io
import os
import tarfile
from pathlib import Path

import pytest

from trainmark.launch.agent import files
from trainmark.launch.agent.files import ArchiveReceiver
from trainmark.launch.delivery import archive_of, archive_of_environment, folder_bytes


def written(folder, **files):
    for name, text in files.items():
        path = folder / name.replace("__", "/").replace("_py", ".py")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder


def packed(archive):
    return b"".join(archive.pieces())


def test_the_same_content_has_the_same_name_whenever_and_in_whatever_order_it_was_written(tmp_path):
    first = written(tmp_path / "first", a_py="a", b__c_py="c")
    second = written(tmp_path / "second", b__c_py="c", a_py="a")
    os.utime(second / "a.py", (1, 1))
    one, other = archive_of(first), archive_of(second)
    assert one.name == other.name == hashlib.sha256(packed(one)).hexdigest()
    assert packed(one) == packed(other)


@pytest.mark.parametrize("change", [{"a_py": "b"}, {"b_py": ""}])
def test_another_content_has_another_name(tmp_path, change):
    folder = written(tmp_path / "x", a_py="a")
    before = archive_of(folder).name
    assert archive_of(written(folder, **change)).name != before


def test_what_a_program_does_not_need_stays_here(tmp_path):
    folder = written(tmp_path / "x", a_py="a", runs__log="x", __pycache__="")
    written(folder, **{".git__config": "x", "b__.venv__lib": "x"})
    with tarfile.open(fileobj=io.BytesIO(packed(archive_of(folder)))) as archive:
        assert "a.py" in archive.getnames()
        assert not any(set(name.split("/")) & {"runs", ".git", ".venv"} for name in archive.getnames())
    assert folder_bytes(folder) == 1


@pytest.mark.parametrize("kind", ["code", "environment"])
def test_a_node_unpacks_what_was_sent_and_finds_it_again(tmp_path, monkeypatch, kind):
    monkeypatch.setenv("TRAINMARK_HOME", str(tmp_path / "home"))
    folder = written(tmp_path / "x", a_py="a", b__c_py="c")
    archive = archive_of(folder) if kind == "code" else archive_of_environment(folder, "ab" * 16, frozenset())
    arrivals, digest = ArchiveReceiver(), hashlib.sha256()
    assert arrivals.have(archive.name) is None
    for piece in archive.pieces():
        digest.update(piece)
        arrivals.piece(piece)
    place = arrivals.unpack(archive.name, digest.hexdigest())
    assert arrivals.have(archive.name) == place
    assert [
        (tmp_path / "home" / "sent" / archive.name / name).read_text() for name in ("a.py", "b/c.py")
    ] == [
        "a",
        "c",
    ]


def test_what_did_not_arrive_whole_is_not_kept(tmp_path, monkeypatch):
    monkeypatch.setenv("TRAINMARK_HOME", str(tmp_path / "home"))
    arrivals = ArchiveReceiver()
    arrivals.piece(b"half")
    with pytest.raises(OSError, match="did not arrive whole"):
        arrivals.unpack("ab" * 16, "0" * 64)
    assert list((tmp_path / "home" / "sent").iterdir()) == []


@pytest.mark.parametrize("name", ["../x", "/etc", "", "XY", "a" * 15])
def test_a_name_that_is_no_content_hash_leads_nowhere(tmp_path, monkeypatch, name):
    monkeypatch.setenv("TRAINMARK_HOME", str(tmp_path / "home"))
    with pytest.raises(OSError, match="no content hash"):
        ArchiveReceiver().have(name)


def test_of_two_nodes_that_share_a_home_the_slower_finds_what_the_quicker_has_unpacked(tmp_path, monkeypatch):
    monkeypatch.setenv("TRAINMARK_HOME", str(tmp_path / "home"))
    archive = archive_of(written(tmp_path / "x", a_py="a"))
    slower, quicker = ArchiveReceiver(), ArchiveReceiver()
    for node in (slower, quicker):
        node.piece(packed(archive))
    unpacked = []
    monkeypatch.setattr(
        files,
        "forget_old",
        # Just when the slower one has seen that nothing is there yet.
        lambda folder: unpacked or unpacked.append(1) or quicker.unpack(archive.name, archive.name),
    )
    place = tmp_path / "home" / "sent" / archive.name
    assert slower.unpack(archive.name, archive.name) == str(place)
    assert (place / "a.py").read_text() == "a" and len(list(place.parent.iterdir())) == 1


def test_where_there_is_no_room_is_said():
    arrivals = ArchiveReceiver()
    arrivals._part = Path("/dev/full")
    with pytest.raises(OSError, match=r"No space left on device: '/dev'"):
        arrivals.piece(b"x")
