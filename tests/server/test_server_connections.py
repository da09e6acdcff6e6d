"""Connections that are held: half-sent requests, unread answers, more of them than one client may have."""

from __future__ import annotations

import socket
import threading
import time

import pytest
import uvicorn

from trainmark.server import serve
from trainmark.server.serve import MOST_OF_CLIENT, ListeningSocket, TimedProtocol, client_of

PATIENCE = 60.0
GET = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"
POST = b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 50\r\n\r\n"


async def app(scope, receive, send) -> None:
    """Read the body, but of /refused nothing; answer with more than any buffer holds at /large."""
    while scope["path"] != "/refused" and (await receive()).get("more_body"):
        pass
    size = 64 << 20 if scope["path"] == "/large" else 2
    headers = [(b"content-length", str(size).encode())]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    for _ in range(size >> 20):
        await send({"type": "http.response.body", "body": bytes(1 << 20), "more_body": True})
    await send({"type": "http.response.body", "body": b"" if size > 2 else b"ok"})


class Served:
    """The application behind our protocol, in a thread."""

    def __init__(self, proxies=()) -> None:
        listening = socket.create_server(("127.0.0.1", 0), backlog=256)
        self.address = listening.getsockname()
        config = uvicorn.Config(app, http=TimedProtocol, loop="asyncio", lifespan="off", log_level="error")
        self.server = uvicorn.Server(config)
        sockets = [ListeningSocket(listening.detach(), proxies)]
        self.thread = threading.Thread(target=self.server.run, kwargs={"sockets": sockets}, daemon=True)
        self.thread.start()

    def connect(self, source: str = "127.0.0.1") -> socket.socket:
        return socket.create_connection(self.address, PATIENCE, source_address=(source, 0))

    def answers(self, source: str) -> bool:
        with self.connect(source) as client:
            client.sendall(GET)
            return answer_of(client).startswith(b"HTTP/1.1 200")

    def stop(self) -> None:
        self.server.should_exit = self.server.force_exit = True
        self.thread.join(PATIENCE)


@pytest.fixture
def served():
    server = Served()
    yield server
    server.stop()


@pytest.fixture
def hasty(monkeypatch):
    """Short times, for tests that wait for one to pass."""
    for name in ("HEAD_SECONDS", "BODY_SECONDS", "REFUSED_BODY_SECONDS", "UNREAD_SECONDS", "CHECK_SECONDS"):
        monkeypatch.setattr(serve, name, 0.1)


def answer_of(client: socket.socket) -> bytes:
    try:
        return client.recv(65536)
    except ConnectionResetError:
        return b""


@pytest.mark.parametrize("half", [b"", b"GET / HT", b"GET / HTTP/1.1\r\nHost: x\r\nX-a: ", POST, POST + b"a"])
def test_a_request_that_does_not_come_to_its_end_is_timed_out(hasty, served, half):
    with served.connect() as client:
        client.sendall(half)
        assert answer_of(client).startswith(b"HTTP/1.1 408 ")
        assert answer_of(client) == b""


def test_the_next_request_of_a_connection_has_its_time_as_well(hasty, served):
    with served.connect() as client:
        client.sendall(GET)
        assert answer_of(client).startswith(b"HTTP/1.1 200")
        client.sendall(GET[:20])
        while answer := answer_of(client):
            assert not answer.startswith(b"HTTP/1.1 2")


def test_a_client_that_goes_on_sending_what_was_refused_is_hung_up_on(hasty, served):
    with served.connect() as client:
        client.sendall(POST.replace(b" / ", b" /refused "))
        assert answer_of(client).startswith(b"HTTP/1.1 200")
        while answer_of(client):
            pass


def test_an_answer_that_nobody_reads_does_not_keep_its_connection(hasty, served):
    with served.connect() as client:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        client.sendall(GET.replace(b" / ", b" /large "))
        deadline = time.monotonic() + PATIENCE
        seen = False
        while (held := bool(served.server.server_state.connections)) or not seen:
            assert time.monotonic() < deadline
            seen = seen or held
            time.sleep(0.01)


def test_one_client_cannot_hold_all_connections_and_gets_its_place_again(served):
    held = [served.connect() for _ in range(MOST_OF_CLIENT)]
    with served.connect() as client:
        assert answer_of(client) == b""
    assert served.answers("127.0.0.2")
    for client in held:
        client.close()
    deadline = time.monotonic() + PATIENCE
    while not answered(served):
        assert time.monotonic() < deadline


def answered(served) -> bool:
    try:
        return served.answers("127.0.0.1")
    except (ConnectionError, BrokenPipeError):
        return False


def test_a_proxy_has_as_many_connections_as_it_needs():
    served = Served(proxies=("127.0.0.1",))
    held = [served.connect() for _ in range(MOST_OF_CLIENT + 5)]
    assert served.answers("127.0.0.1")
    for client in held:
        client.close()
    served.stop()


def test_an_ipv6_network_is_one_client_and_every_ipv4_address_its_own():
    assert client_of("2001:db8:1:2:3::4") == client_of("2001:db8:1:2:ffff::1") != client_of("2001:db8:1:3::1")
    assert client_of("::ffff:192.0.2.1") == client_of("192.0.2.1") != client_of("192.0.2.2")
    assert client_of("fe80::1%eth0") == client_of("fe80::2%eth1")
