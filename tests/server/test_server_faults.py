"""The server's own trouble: a full disk, a database that is away. Nobody is blamed, and reading goes on."""

from __future__ import annotations

import errno
import os
import re
import shutil
import subprocess
from collections import namedtuple
from contextlib import contextmanager
from pathlib import Path

import pages_client
import pytest
from benchmarks.serving import postgres
from benchmarks.serving.process import ServerProcess
from forged_packs import members, repacked
from pages_sample import MACHINES, sample_app
from sqlalchemy import event
from sqlalchemy.exc import IntegrityError, OperationalError

from trainmark.server import faults
from trainmark.server.access.tokens import Role
from trainmark.server.database.engine import opened, reading
from trainmark.server.database.overview_queries import audit_log
from trainmark.server.faults import fault_of
from trainmark.server.ingest import ingest
from trainmark.server.ingest.check import IngestError
from trainmark.server.ingest.isolated import check_isolated
from trainmark.server.settings import ServerSettings

Usage = namedtuple("Usage", "total used free")


@pytest.mark.parametrize(
    ("error", "fault"),
    [
        (OSError(errno.ENOSPC, "no space"), faults.FULL),
        (OSError(errno.EDQUOT, "quota"), faults.FULL),
        (OSError(errno.EIO, "input/output"), faults.FAILING),
        (OperationalError("", {}, Exception("database or disk is full")), faults.FULL),
        (OperationalError("", {}, Exception("attempt to write a readonly database")), faults.READ_ONLY),
        (OperationalError("", {}, Exception("connection refused")), faults.AWAY),
        (OSError(errno.ENOENT, "no file"), None),
        (IntegrityError("", {}, Exception("UNIQUE constraint failed")), None),
        (ValueError("wrong"), None),
    ],
)
def test_trouble_of_the_server_is_told_from_faults_of_a_file(error, fault):
    assert fault_of(error) == fault
    wrapped = ValueError("cannot be unpacked")
    wrapped.__cause__ = error
    assert fault_of(wrapped) == fault


@contextmanager
def full_database(engine):
    """Let SQLite grow no further: what it then says is what it says on a full disk."""

    def limit(connection, _record, _proxy) -> None:
        (pages,) = connection.execute("PRAGMA page_count").fetchone()
        connection.execute(f"PRAGMA max_page_count = {pages}")

    event.listen(engine, "checkout", limit)
    yield
    event.remove(engine, "checkout", limit)


@pytest.fixture
def served(tmp_path):
    return sample_app(tmp_path, MACHINES[:1], 3)


def sign_in(served, role: str):
    client = pages_client.Client(served.app)
    return client, client.post("/login", {"token": served.secrets[role]})


def fill(served) -> None:
    """Fill the pages that the tables have already, so that the next row needs a new one."""
    for _ in range(200):
        _, answer = sign_in(served, "read")
        if "unstored" in answer.headers["set-cookie"]:
            return
    raise AssertionError("the database never became full")


def test_on_a_full_disk_people_sign_in_read_and_sign_out(served):
    with full_database(served.app.state.engine):
        fill(served)
        client, answer = sign_in(served, "admin")
        assert answer.status_code == 303
        for path in ("/", "/runs", "/cases/1", "/admin"):
            assert client.get(path).status_code == 200, path
        csrf = re.search(r'name="csrf" value="([0-9a-f]+)"', client.get("/admin").text)[1]
        fields = {"csrf": csrf, "role": "read", "days": ""}
        made = (client.post("/admin/tokens", {**fields, "name": f"{'x' * 90}{n}"}) for n in range(200))
        refused = next(answer for answer in made if answer.status_code != 200)
        assert refused.status_code == 507 and "disk is full" in refused.text
        assert client.post("/logout", {"csrf": csrf}).status_code == 303
        assert client.get("/admin").status_code == 303


def test_a_session_that_no_row_has_is_signed_and_ends_with_its_token(served):
    with full_database(served.app.state.engine):
        fill(served)
        client, answer = sign_in(served, "read")
        cookie = re.search(r"trainmark_session=([^;]+)", answer.headers["set-cookie"])[1]
    stranger = pages_client.Client(served.app)
    other = cookie.replace(".", ".9", 1)
    for forged in (other, cookie[:-1] + ("0" if cookie[-1] != "0" else "1"), "unstored.", "unstored.1.2.3"):
        assert stranger.get("/cases", cookie=f"trainmark_session={forged}").status_code == 303, forged
    admin, _ = sign_in(served, "admin")
    csrf = re.search(r'name="csrf" value="([0-9a-f]+)"', admin.get("/admin").text)[1]
    assert client.get("/cases").status_code == 200
    admin.post("/admin/tokens/revoke", {"csrf": csrf, "name": "read-bot"})
    assert client.get("/cases").status_code == 303


@pytest.fixture
def bloated(make_pack, tmp_path):
    """A sound file whose run has 12 MiB of log in a few kilobytes."""
    contents = members(make_pack(name="bloated"))
    trial = next(name for name in contents if name.endswith("/figure.json")).rpartition("/")[0]
    return repacked(
        tmp_path / "bloated", {**contents, f"{trial}/logs/rank0.log": b"a line\n" * (12 << 20 >> 3)}
    )


def checked_status(file, settings) -> int:
    settings.incoming.mkdir(parents=True, exist_ok=True)
    with pytest.raises(IngestError) as refused:
        check_isolated(file, settings)
    assert not any(settings.incoming.iterdir())
    return refused.value.status


def test_a_push_unpacks_to_no_more_than_a_multiple_of_the_largest_file(bloated, tmp_path):
    assert checked_status(bloated, ServerSettings(tmp_path / "data", largest_pack_bytes=1 << 20)) == 422


def test_a_push_for_which_the_disk_has_no_room_is_not_blamed(bloated, tmp_path, monkeypatch):
    monkeypatch.setattr(ingest.shutil, "disk_usage", lambda _: Usage(1 << 40, 0, (64 << 20) + (8 << 20)))
    assert checked_status(bloated, ServerSettings(tmp_path / "data")) == 507


@pytest.fixture
def small_disk(tmp_path):
    """A disk of 3 MB."""
    folder = tmp_path / "disk"
    folder.mkdir(mode=0o700)
    if (
        os.getuid() != 0
        or subprocess.run(
            ["mount", "-t", "tmpfs", "-o", "size=3m,mode=0700", "tmpfs", folder], check=False
        ).returncode
    ):
        pytest.skip("a disk that becomes full is mounted, which takes root")
    yield folder
    subprocess.run(["umount", folder], check=True)


def test_pushes_to_a_full_disk_are_asked_to_come_again_and_none_is_lost(small_disk, make_pack):
    process = ServerProcess(small_disk, None, "--pushes", "10000")
    token = process.token("pusher", Role.PUSH)
    process.start()
    try:
        answers = [process.push(make_pack(name=f"full-{number}"), token) for number in range(40)]
        (small_disk / "filler").write_bytes(b"x" * (shutil.disk_usage(small_disk).free))
        answers += [process.push(make_pack(name=f"full-{number}"), token) for number in range(40, 44)]
        assert {answer.status for answer in answers} == {201, 507}
        late = answers[-1]
        assert late.json["error"] == faults.FULL.sentence and late.headers["retry-after"] == "10"
        assert process.request("/healthz").status == 200
    finally:
        process.stop()
    (small_disk / "filler").unlink()
    stored = sum(answer.status == 201 for answer in answers)
    assert len(list(process.settings.packs.glob("??/*"))) == stored
    assert list(process.settings.incoming.iterdir()) == []
    with opened(process.settings) as engine, reading(engine) as connection:
        actions = [entry.action for entry in audit_log(connection, 1000)]
    assert actions.count("push") == stored and "push-refused" not in actions


def test_while_postgresql_is_down_everything_says_so_and_afterwards_goes_on(make_pack, tmp_path):
    try:
        with postgres.cluster() as url:
            folder = Path(url.partition("host=")[2])
            process = ServerProcess(tmp_path / "data", url)
            token = process.token("admin", Role.ADMIN)
            process.start()
            assert process.push(make_pack(name="before"), token).status == 201
            postgres.stop(folder)
            for path in ("/healthz", "/", "/api/v1/runs"):
                answer = process.request(path, token)
                assert answer.status == 503 and answer.headers["retry-after"], path
            assert process.push(make_pack(name="down"), token).status == 503
            page = process.request("/", token, headers={"Accept": "text/html"})
            assert page.status == 503 and b"<html" in page.body
            postgres.start(folder)
            assert process.push(make_pack(name="down"), token).status == 201
            assert process.request("/healthz").status == 200
            log = process.stopped_log()
            assert "Traceback" not in log and log.count("database does not answer") == 5
    except postgres.NoPostgresError as error:
        pytest.skip(str(error))
