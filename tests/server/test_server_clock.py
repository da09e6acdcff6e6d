"""A server whose clock is wrong, and set right again."""

from __future__ import annotations

import time

import pages_client
import pytest
from benchmarks.serving.packs import CREATED, DAY

from trainmark.server.access import tokens
from trainmark.server.access.tokens import Role
from trainmark.server.app import create_app
from trainmark.server.database import migrate
from trainmark.server.database.engine import opened, writing
from trainmark.server.faults import CLOCK
from trainmark.server.ingest import ingest
from trainmark.server.ingest.check import IngestError, check
from trainmark.server.ingest.ingest import Upload, clear_incoming

YEAR = 365 * DAY
NOW = CREATED + YEAR


@pytest.fixture
def set_clock(monkeypatch):
    """Sets the wall clock, and leaves the monotonic one as it is."""

    def set_to(now: float) -> None:
        monkeypatch.setattr(time, "time", lambda: now)

    set_to(NOW)
    return set_to


@pytest.fixture
def engine(set_clock, empty_settings):
    with opened(empty_settings) as engine:
        migrate.upgrade(engine)
        yield engine


def test_a_session_that_was_opened_while_the_clock_was_ahead_is_over_once_it_is_right(
    engine, empty_settings, set_clock
):
    with writing(engine) as connection:
        secret = tokens.create(connection, "reader", Role.READ)
    app = create_app(empty_settings)
    answers = []
    for ahead in (10 * YEAR, 60.0):
        set_clock(NOW + ahead)
        client = pages_client.Client(app)
        client.post("/login", {"token": secret})
        answers.append(client.get("/runs").status_code)
        set_clock(NOW)
        answers.append(client.get("/runs").status_code)
    app.state.engine.dispose()
    assert answers == [200, 303, 200, 200]


def test_a_signed_session_lasts_no_longer_for_a_clock_that_was_ahead(engine, set_clock):
    with writing(engine) as connection:
        identity = tokens.identity(connection, tokens.create(connection, "reader", Role.READ))
        identities = []
        for ahead in (10 * YEAR, 0.0):
            set_clock(NOW + ahead)
            cookie = tokens.unstored_session("key", identity, 3600.0)
            set_clock(NOW)
            identities.append(tokens.unstored_identity(connection, "key", cookie))
    assert identities[0] is None and identities[1].name == "reader"


def test_a_token_used_while_the_clock_was_ahead_is_noted_again_once_it_is_right(engine, set_clock):
    with writing(engine) as connection:
        secret = tokens.create(connection, "reader", Role.READ)
        number = tokens.identity(connection, secret).token_id
        for now in (NOW + 10 * YEAR, NOW):
            set_clock(now)
            tokens.mark_used(connection, number)
        assert [row.used for row in tokens.tokens(connection)] == [NOW]


@pytest.fixture(scope="module")
def files(make_pack):
    """Runs by their day, packed while no clock is wrong."""
    return {day: make_pack(name=f"clock-{day}", day=day, rates=(80.0,)) for day in (1, 2, 200, 360, 363, 400)}


@pytest.fixture
def push(engine, empty_settings, files, tmp_path, monkeypatch):
    """Takes a run of a day in, checked by the clock of this process."""
    folders = (tmp_path / f"run{number}" for number in range(10))
    monkeypatch.setattr(ingest, "check_isolated", lambda file, _: check(file, next(folders), None))
    clear_incoming(empty_settings)
    with writing(engine) as connection:
        identity = tokens.identity(connection, tokens.create(connection, "push", Role.PUSH))
    taken = ingest.Ingest(empty_settings, engine)

    def push_day(day: int):
        upload = Upload(empty_settings)
        try:
            upload.write(files[day].read_bytes())
            return taken.take(upload, identity, "127.0.0.1")
        finally:
            upload.close()

    return push_day


def test_runs_to_come_are_held_against_the_clock_of_a_server_that_has_such(push, set_clock):
    push(day=360)
    set_clock(NOW - 100 * DAY)
    with pytest.raises(IngestError) as refused:
        push(day=363)
    assert (refused.value.status, str(refused.value)) == (CLOCK.status, CLOCK.sentence)
    assert push(day=200).new


def test_a_clock_that_was_ahead_once_is_not_said_to_be_behind_ever_after(push, set_clock):
    set_clock(NOW + 10 * YEAR)
    push(day=1)
    set_clock(NOW)
    with pytest.raises(IngestError, match="one of the two clocks is wrong") as refused:
        push(day=400)
    assert refused.value.status == 422
    assert push(day=2).new
