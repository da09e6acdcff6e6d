"""Connections of a listening socket that two processes share, here as two objects of one process."""

import os
import socket
import time

import pytest

from trainmark.server.serve import MOST_SECONDS, SharedSocket


@pytest.fixture
def listening():
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.setblocking(False)
        yield server


@pytest.fixture
def clients(listening):
    connected = [socket.create_connection(listening.getsockname()) for _ in range(4)]
    yield connected
    for client in connected:
        client.close()


def shared(listening: socket.socket) -> SharedSocket:
    return SharedSocket(os.dup(listening.fileno()))


def test_who_has_just_accepted_leaves_the_next_connection_to_the_other(listening, clients):
    with shared(listening) as first, shared(listening) as second:
        taken = [first.accept()[0]]
        with pytest.raises(BlockingIOError):
            first.accept()
        taken.append(second.accept()[0])
        assert {one.getpeername() for one in taken} <= {client.getsockname() for client in clients}
        for connection in taken:
            connection.close()


def test_where_the_other_does_not_come_it_accepts_after_a_moment(listening, clients):
    with shared(listening) as only:
        for _ in clients:
            only.accept()[0].close()
            time.sleep(MOST_SECONDS)
        with pytest.raises(BlockingIOError):
            only.accept()


def test_connections_send_at_once_what_they_are_given(listening, clients):
    """asyncio sets TCP_NODELAY on sockets that name their protocol, as these do."""
    with shared(listening) as only:
        connection, _ = only.accept()
        assert connection.proto == socket.IPPROTO_TCP
        connection.close()
