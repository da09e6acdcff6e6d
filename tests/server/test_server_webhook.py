"""The webhook: which changes are new, what is posted, and what becomes of an address that does not answer."""

import json
import queue
import random
import threading
import time
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from pages_sample import A100, DAY, MadeCase, MadeMachine, key, made_run
from sqlalchemy import select

from trainmark.base.errors import UserError
from trainmark.server.access import tokens
from trainmark.server.access.tokens import Role
from trainmark.server.database.engine import open_engine, writing
from trainmark.server.database.migrate import upgrade
from trainmark.server.database.models import AuditTable
from trainmark.server.ingest.store import Received, store
from trainmark.server.ingest.webhook import Webhook
from trainmark.server.serve import ListenOptions, require_safe
from trainmark.server.settings import ServerSettings

STEPS = ((12, 0.95), (24, 1.06))
CASE = MadeCase(key("pytorch", "amp", 256, A100), 2475, steps=STEPS, doubts=("throttled",))


@dataclass
class History:
    """36 days of pushes: by day, the results at which a new change begins."""

    engine: object
    by_day: dict[int, tuple[int, ...]] = field(default_factory=dict)


@pytest.fixture(scope="module")
def history(tmp_path_factory):
    engine = open_engine(ServerSettings(tmp_path_factory.mktemp("webhook")))
    upgrade(engine)
    machine, chance, began = MadeMachine("gpu-11", A100, (CASE,)), random.Random(4), time.time() - 36 * DAY
    history = History(engine)
    for day in range(36):
        run = made_run(machine, day, began, chance, f"nightly-{day:02d}")
        with writing(engine) as connection:
            if day == 0:
                secret = tokens.create(connection, "push-bot", Role.PUSH)
                identity = tokens.identity(connection, secret)
            stored = store(connection, run, Received(run.run["uuid"], 1, identity, "127.0.0.1"))
        if stored.changed:
            history.by_day[day] = stored.changed
    yield history
    engine.dispose()


@pytest.fixture
def listener():
    """An address that keeps what is posted and answers with the next of `statuses`, then 204."""

    class Handler(BaseHTTPRequestHandler):
        def answer(self):
            data = self.rfile.read(int(self.headers["content-length"]))
            server.posted.put((self.path, json.loads(data)))
            self.send_response(server.statuses.pop(0) if server.statuses else 204)
            self.send_header("Location", "/elsewhere")
            self.end_headers()

        def log_message(self, *_):
            pass

    Handler.do_POST = Handler.do_GET = Handler.answer
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.posted, server.statuses = queue.Queue(), []
    server.address = f"http://127.0.0.1:{server.server_port}/hook"
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server
    server.shutdown()
    server.server_close()


def post(history, address, results):
    webhook = Webhook(address, history.engine, pauses=(0.0, 0.0))
    webhook.start()
    webhook.tell(results, "https://bench.example.org/")
    # The end comes after what waits.
    webhook._waiting.put(None)
    webhook._thread.join(60)
    assert not webhook._thread.is_alive()


def failures(history):
    chosen = select(AuditTable.subject, AuditTable.detail).where(AuditTable.action == "webhook-failed")
    with writing(history.engine) as connection:
        return [tuple(row) for row in connection.execute(chosen)]


def test_each_change_is_new_with_one_push_soon_after_it(history):
    assert [len(begins) for begins in history.by_day.values()] == [1, 1]
    first, second = history.by_day
    assert 12 < first < 18
    assert 24 < second < 30


def test_what_is_posted_says_the_size_the_place_the_facts_and_the_doubts(history, listener):
    post(history, listener.address, next(iter(history.by_day.values())))
    path, body = listener.posted.get(timeout=60)
    assert path == "/hook"
    assert body["text"].startswith("resnet50 pytorch amp b256 1n1g on gpu-11: −")
    assert "driver 565.57.01 → 570.86.15" in body["text"]
    assert body["text"].endswith(". https://bench.example.org/cases/1")
    assert body["change"]["regression"] is True
    assert body["change"]["low"] < body["change"]["ratio"] < body["change"]["high"] < 1
    assert body["doubts"] == ["throttled"]
    assert "; in doubt: throttled." in body["text"]


def test_an_address_that_fails_twice_is_asked_a_third_time(history, listener):
    listener.statuses[:] = [500, 429]
    post(history, listener.address, next(iter(history.by_day.values())))
    assert listener.posted.qsize() == 3
    assert failures(history) == []


def test_a_redirection_is_not_followed_and_what_failed_is_in_the_audit_log(history, listener):
    listener.statuses[:] = [302]
    post(history, listener.address, next(iter(history.by_day.values())))
    assert [path for path, _ in listener.posted.queue] == ["/hook"]
    assert failures(history)[-1] == ("case 1", "HTTP Error 302: Found")


@pytest.mark.parametrize("address", ["ftp://chat.example.org", "https://", "chat.example.org", "http://x:y"])
def test_a_webhook_that_is_no_address_is_refused_before_serving(tmp_path, address):
    with pytest.raises(UserError, match="--webhook takes an address"):
        require_safe(ServerSettings(tmp_path, webhook=address), ListenOptions())
