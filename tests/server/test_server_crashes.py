"""Twenty clients push while the server is killed: nothing acknowledged is lost, nothing is half-stored."""

from __future__ import annotations

import pytest
from benchmarks.serving.crashes import damage, push_through_crashes
from benchmarks.serving.process import ServerProcess

from trainmark.server.access.tokens import Role
from trainmark.server.database.engine import opened, reading
from trainmark.server.ingest.ingest import without_row

KILLS, RUNS = 3, 24


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def crashed(request, tmp_path_factory, make_pack):
    """A server that was killed, started again, and given all files in the end."""
    url = request.getfixturevalue("empty_database")() if request.param == "postgresql" else None
    process = ServerProcess(tmp_path_factory.mktemp("crashing"), url)
    token = process.token("pusher", Role.PUSH)
    files = [make_pack(name=f"crash-{number}", day=number, rates=(80.0,)) for number in range(RUNS)]
    process.start()
    outcome = push_through_crashes(process, files, token, KILLS)
    process.kill()
    yield process, outcome, files
    process.kill()


def test_every_push_is_acknowledged_in_the_end(crashed):
    _, outcome, files = crashed
    assert outcome.refused == []
    assert len(outcome.acknowledged) == len(files)
    assert outcome.kills == KILLS


def test_after_the_crashes_nothing_acknowledged_is_lost_and_nothing_is_half_stored(crashed):
    process, outcome, _ = crashed
    assert damage(process, outcome.acknowledged) == []


def test_a_start_removes_what_a_kill_left_half_received(crashed):
    process, _, _ = crashed
    (process.settings.incoming / "upload-left").write_bytes(b"half")
    process.start()
    assert not (process.settings.incoming / "upload-left").exists()


def test_after_a_start_every_packed_file_has_a_row(crashed):
    process, _, _ = crashed
    process.kill()
    process.start()
    digests = [path.stem for path in process.settings.packs.glob("??/*")]
    with opened(process.settings) as engine, reading(engine) as connection:
        assert len(digests) == RUNS and without_row(connection, digests) == []
