from __future__ import annotations

import socket
import sys

import pytest

from trainmark.workloads.common.own_address import AddressGuard, own_address

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="a filter on a socket is Linux's")


@pytest.fixture
def second_of_two(monkeypatch):
    monkeypatch.setenv("RANK", "1")
    monkeypatch.setenv("TRAINMARK_PEERS", "10.0.0.1:4000,127.0.0.1:4001")


def is_reached(address: str, port: int) -> bool:
    try:
        with socket.create_connection((address, port), timeout=0.3):
            return True
    except OSError:
        return False


def test_a_rank_knows_the_address_that_it_was_given(second_of_two):
    assert own_address() == "127.0.0.1"


@pytest.mark.parametrize("peers", ["", "node1:4000,node2:4001"])
def test_a_name_is_no_address_for_it_may_mean_another_one_here(second_of_two, monkeypatch, peers):
    monkeypatch.setenv("TRAINMARK_PEERS", peers)
    assert own_address() is None


@pytest.mark.parametrize("family", [socket.AF_INET, socket.AF_INET6], ids=["ipv4", "both"])
def test_what_listens_at_every_address_is_reached_at_the_ranks_own_alone(second_of_two, family):
    both = family == socket.AF_INET6
    with AddressGuard():
        server = socket.create_server(("", 0), family=family, dualstack_ipv6=both)
    with server:
        port = server.getsockname()[1]
        assert is_reached("127.0.0.1", port)
        assert not is_reached("127.0.0.2", port)
        assert not (both and is_reached("::1", port))


def test_what_listens_at_one_address_is_left_alone(second_of_two):
    with AddressGuard(), socket.create_server(("127.0.0.2", 0)) as server:
        assert is_reached("127.0.0.2", server.getsockname()[1])


def test_without_an_address_nothing_is_closed(monkeypatch):
    monkeypatch.delenv("TRAINMARK_PEERS", raising=False)
    with AddressGuard():
        server = socket.create_server(("", 0))
    with server:
        assert is_reached("127.0.0.2", server.getsockname()[1])
