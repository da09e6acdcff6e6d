"""Who may do what: tokens, roles, scopes, sessions, limits, headers and the audit log."""

from __future__ import annotations

import socket
import time
from urllib.parse import urlencode, urlsplit

import pytest
from benchmarks.serving.process import ServerProcess

from trainmark.base.errors import UserError
from trainmark.server.access import tokens
from trainmark.server.access.guard import safe_next
from trainmark.server.access.middleware import RateLimit
from trainmark.server.access.tokens import Role
from trainmark.server.database.engine import opened, writing
from trainmark.server.database.models import SessionTable, TokenTable
from trainmark.server.settings import ServerSettings, locked

FORM = {"Content-Type": "application/x-www-form-urlencoded"}


def status(server, path: str, token: str | None) -> int:
    return server.request(path, token).status


def test_without_a_token_nothing_can_be_read_and_nothing_pushed(server):
    assert status(server, "/api/v1/runs", None) == 401
    assert server.request("/api/v1/packs", None, b"x").status == 401
    page = server.request("/")
    assert page.status == 303 and page.headers["location"] == "/login?next=%2F"


def test_a_token_that_is_not_valid_is_told_apart_from_none(sqlite_server):
    for method, path in (("GET", "/api/v1/runs"), ("GET", "/"), ("POST", "/api/v1/packs")):
        answer = sqlite_server.request(path, "tm_wrong", b"x" if method == "POST" else None)
        assert answer.status == 401 and "unknown, revoked or expired" in answer.json["error"], path
    assert "a token is needed" in sqlite_server.request("/api/v1/runs").json["error"]


@pytest.mark.parametrize("token", ["tm_", "tm_" + "A" * 43, "' OR 1=1 --", "tm_%00", "x" * 5000])
def test_a_token_that_was_never_made_opens_nothing(server, token):
    assert status(server, "/api/v1/runs", token) == 401


def test_each_role_may_do_its_own(server):
    reading, pushing, admin = (server.tokens[role] for role in (Role.READ, Role.PUSH, Role.ADMIN))
    assert [status(server, "/api/v1/runs", token) for token in (reading, pushing, admin)] == [200, 403, 200]
    assert [status(server, "/api/v1/audit", token) for token in (reading, pushing, admin)] == [403, 403, 200]
    assert server.request("/api/v1/packs", reading, b"x").status == 403


def test_a_token_ends_when_it_is_revoked_or_has_expired(server):
    expired = server.token(f"expired-{time.time()}", Role.READ, expires=time.time() - 1)
    name = f"revoked-{time.time()}"
    secret = server.token(name, Role.READ)
    assert status(server, "/api/v1/runs", expired) == 401
    assert status(server, "/api/v1/runs", secret) == 200
    with opened(server.settings) as engine, writing(engine) as connection:
        tokens.revoke(connection, name)
    assert status(server, "/api/v1/runs", secret) == 401


def test_a_token_of_one_server_opens_no_other(server, sqlite_server):
    if server.url == sqlite_server.url:
        pytest.skip("one server")
    assert status(server, "/api/v1/runs", sqlite_server.tokens[Role.ADMIN]) == 401


def test_a_scoped_token_pushes_only_suites_that_match(sqlite_server, make_pack):
    scoped = sqlite_server.token("scoped", Role.PUSH, suites="nightly*")
    assert sqlite_server.push(make_pack(name="in", suite="nightly-1", host="scope"), scoped).status == 201
    answer = sqlite_server.push(make_pack(name="out", suite="release", host="scope"), scoped)
    assert answer.status == 403 and "may push suites 'nightly*'" in answer.json["error"]


def test_a_scoped_token_is_not_told_of_a_stored_run_of_another_suite(sqlite_server, make_pack):
    file = make_pack(name="theirs", suite="release", host="scope")
    assert sqlite_server.push(file, sqlite_server.tokens[Role.PUSH]).status in (200, 201)
    scoped = sqlite_server.token("scoped-too", Role.PUSH, suites="nightly*")
    assert sqlite_server.push(file, scoped).status == 403


def test_nobody_else_on_the_machine_can_read_what_a_server_keeps(sqlite_server, make_pack):
    sqlite_server.push(make_pack(name="private", host="private"), sqlite_server.tokens[Role.PUSH])
    (run,) = sqlite_server.request("/api/v1/search?q=private", sqlite_server.tokens[Role.READ]).json["runs"]
    assert status(sqlite_server, f"/runs/{run['uuid']}/report", sqlite_server.tokens[Role.READ]) == 200
    kept = list(sqlite_server.settings.data.rglob("*"))
    assert [path for path in kept if path.stat().st_mode & 0o077] == []


def test_a_folder_that_others_may_enter_is_not_served(tmp_path):
    tmp_path.chmod(0o750)
    with pytest.raises(UserError, match="chmod 700"), locked(ServerSettings(tmp_path)):
        pass
    assert list(tmp_path.iterdir()) == []


def test_the_database_has_only_hashes_of_tokens_and_sessions(sqlite_server):
    from sqlalchemy import select

    cookie = log_in(sqlite_server, sqlite_server.tokens[Role.READ])
    with opened(sqlite_server.settings) as engine, writing(engine) as connection:
        stored = [
            *connection.execute(select(TokenTable.hash)).scalars(),
            *connection.execute(select(SessionTable.hash)).scalars(),
        ]
    secrets = [*sqlite_server.tokens.values(), cookie.partition("=")[2]]
    assert not set(secrets) & set(stored)
    assert all(len(value) == 64 for value in stored)


def log_in(server, token: str) -> str:
    """Return the cookie of a new session."""
    answer = server.request("/login", None, urlencode({"token": token}).encode(), FORM)
    assert answer.status == 303, answer.body
    cookie = answer.headers["set-cookie"]
    assert "HttpOnly" in cookie and "SameSite=lax" in cookie
    return cookie.partition(";")[0]


def test_a_browser_logs_in_with_a_token_and_reads_by_its_cookie(sqlite_server):
    cookie = log_in(sqlite_server, sqlite_server.tokens[Role.READ])
    assert sqlite_server.request("/", headers={"Cookie": cookie}).status == 200
    assert sqlite_server.request("/", headers={"Cookie": cookie + "x"}).status == 303


def test_a_form_of_another_site_is_refused(sqlite_server):
    cookie = log_in(sqlite_server, sqlite_server.tokens[Role.READ])
    body = urlencode({"csrf": "0" * 64}).encode()
    assert sqlite_server.request("/logout", None, body, {**FORM, "Cookie": cookie}).status == 403
    foreign = {**FORM, "Origin": "https://evil.example"}
    login = urlencode({"token": sqlite_server.tokens[Role.READ]}).encode()
    assert sqlite_server.request("/login", None, login, foreign).status == 403
    assert sqlite_server.request("/", headers={"Cookie": cookie}).status == 200


@pytest.mark.parametrize("path", ["/logout", "/admin/tokens", "/admin/tokens/revoke"])
def test_a_form_of_anybody_is_refused_before_its_body_has_come(sqlite_server, path):
    head = (
        f"POST {path} HTTP/1.1\r\nHost: x\r\nContent-Length: 3000000\r\n"
        f"Content-Type: {FORM['Content-Type']}\r\n\r\n"
    )
    address = urlsplit(sqlite_server.url)
    with socket.create_connection((address.hostname, address.port), 60) as client:
        client.sendall(head.encode())
        assert client.recv(65536).split()[1] in (b"401", b"403", b"413")


@pytest.mark.parametrize(
    "place", ["https://evil.example", "//evil.example", "/\\evil.example", "javascript:alert(1)", "/\r\nX: 1"]
)
def test_after_logging_in_nobody_is_sent_to_another_site(place):
    assert safe_next(place) == "/"
    assert safe_next("/cases/1?by=date") == "/cases/1?by=date"


@pytest.mark.parametrize("path", ["/", "/healthz", "/api/v1/runs", "/nowhere", "/login", "/api"])
def test_every_response_has_the_headers_that_keep_foreign_scripts_out(sqlite_server, path):
    headers = sqlite_server.request(path).headers
    policy = headers["content-security-policy"]
    assert "default-src 'none'" in policy and "unsafe-inline" not in policy and "unsafe-eval" not in policy
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["x-frame-options"] == "DENY"
    assert headers["cache-control"] == "no-store"


def test_the_audit_log_has_pushes_refusals_and_logins(sqlite_server, make_pack):
    sqlite_server.push(make_pack(name="audited", host="audited"), sqlite_server.tokens[Role.PUSH])
    sqlite_server.request("/api/v1/packs", sqlite_server.tokens[Role.PUSH], b"no pack")
    log_in(sqlite_server, sqlite_server.tokens[Role.READ])
    entries = sqlite_server.request("/api/v1/audit", sqlite_server.tokens[Role.ADMIN]).json
    by_action = {entry["action"]: entry for entry in reversed(entries)}
    assert by_action.keys() >= {"push", "push-refused", "login", "token-created"}
    assert by_action["push"]["token"] == "push" and by_action["push"]["address"] == "127.0.0.1"


def test_requests_beyond_the_limit_are_told_when_to_come_again(tmp_path):
    process = ServerProcess(tmp_path, None, "--requests", "20")
    token = process.token("reader", Role.READ)
    process.start()
    try:
        answers = [process.request("/api/v1/machines", token) for _ in range(12)]
    finally:
        process.stop()
    assert answers[0].status == 200 and answers[-1].status == 429
    assert int(answers[-1].headers["retry-after"]) >= 1


def test_a_rate_limit_allows_a_burst_and_then_its_rate():
    limit = RateLimit(60)
    allowed = [limit.wait_seconds("client", now=0.0) == 0 for _ in range(20)]
    assert sum(allowed) == 15
    assert limit.wait_seconds("client", now=1.01) == 0
    assert limit.wait_seconds("other", now=1.01) == 0


def test_a_public_server_is_read_by_anybody_and_pushed_to_by_nobody_without_a_token(tmp_path):
    process = ServerProcess(tmp_path, None, "--public")
    process.token("admin", Role.ADMIN)
    process.start()
    try:
        assert status(process, "/api/v1/runs", None) == 200
        assert status(process, "/", None) == 200
        assert status(process, "/api/v1/audit", None) == 401
        assert process.request("/api/v1/packs", None, b"x").status == 401
    finally:
        process.stop()
