"""The nodes call on each other: who answers whom, and who gets no answer."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import threading

import pytest
from healthy_node import FACTS
from local_nodes import local_nodes, oldest_python

from trainmark.launch.asking import Reply
from trainmark.machine import reach_on_node
from trainmark.machine.examination import ExaminedNode, Wanted
from trainmark.machine.handshake import proof
from trainmark.machine.node_program import program
from trainmark.machine.reach import (
    ALL_PAIRS_UP_TO,
    PROGRAM,
    MeetingNode,
    calls_of,
    hold,
    peers_of,
    places_of,
    question,
)


def free_port(address: str) -> int:
    with socket.create_server((address, 0)) as server:
        port: int = server.getsockname()[1]
        return port


@pytest.fixture
def places() -> dict[str, MeetingNode]:
    return {
        name: MeetingNode(name, address, free_port(address))
        for name, address in (("n1", "127.0.0.21"), ("n2", "127.0.0.22"), ("n3", "127.0.0.23"))
    }


def meeting_of(places, node, seconds=5.0, token="secret"):
    return reach_on_node.Meeting(question(places[node], places, token, seconds))


def test_all_reach_all_and_the_meeting_ends_before_its_time(places):
    ask = local_nodes(3)
    questions = [question(place, places, "secret", 60.0) for place in places.values()]
    replies = ask(program(PROGRAM), questions, 30.0)
    assert [reply.trouble for reply in replies] == [None] * 3
    for reply in replies:
        assert set(reply.answer["reached"]) == set(reply.answer["heard"]) == set(ask.nodes) - {reply.node}
        for trip in reply.answer["reached"].values():
            # One clock, read over there while the round trip lasted.
            assert abs(trip["ahead"]) <= trip["seconds"] / 2 + 1e-3


def test_a_node_with_python_3_8_meets_one_with_ours(places):
    pair = {name: places[name] for name in ("n1", "n2")}
    ask = local_nodes(2, python=oldest_python())
    replies = ask(program(PROGRAM), [question(place, pair, "secret", 30.0) for place in pair.values()], 60.0)
    assert [list(reply.answer["reached"]) for reply in replies] == [["n2"], ["n1"]]


def test_a_peer_at_which_nothing_listens_is_named_with_the_reason(places):
    report = meeting_of(places, "n1", seconds=0.3).hold()
    assert report["reached"] == {}
    assert report["failed"] == {"n2": "Connection refused", "n3": "Connection refused"}


def test_who_does_not_know_the_token_gets_no_answer_and_is_not_heard(places):
    pair = {name: places[name] for name in ("n1", "n2")}
    meeting = meeting_of(pair, "n1", seconds=1.5)
    report = {}
    thread = threading.Thread(target=lambda: report.update(meeting.hold()))
    thread.start()
    with socket.create_connection((pair["n1"].address, pair["n1"].port), timeout=5) as stranger:
        stranger.sendall(f"{proof('guessed', 'n2')} n2\n".encode())
        assert stranger.recv(100) == b""
    thread.join()
    assert report["heard"] == []


def test_another_service_at_the_peers_port_is_not_taken_for_the_peer(places):
    pair = {name: places[name] for name in ("n1", "n2")}
    with socket.create_server((pair["n2"].address, pair["n2"].port)) as server:

        def greet():
            caller, _ = server.accept()
            with caller:
                caller.sendall(b"220 mail.example.com ESMTP\r\n")

        thread = threading.Thread(target=greet)
        thread.start()
        meeting = meeting_of(pair, "n1")
        with meeting.listener, pytest.raises(ConnectionError, match="something else"):
            meeting.round_trip(vars(pair["n2"]), 5.0)
        thread.join()


def test_the_token_itself_is_never_sent():
    assert "secret" not in proof("secret", "n1")


def test_it_listens_at_its_own_address_only(places):
    with meeting_of(places, "n1").listener, pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", places["n1"].port), timeout=5)


@pytest.mark.parametrize("address", ["0.0.0.0", "::"])
def test_it_does_not_listen_at_all_addresses(places, address):
    everywhere = {**places, "n1": MeetingNode("n1", address, 29500)}
    with pytest.raises(ValueError, match="one address"):
        meeting_of(everywhere, "n1")


def test_a_node_that_takes_no_part_leaves_at_once():
    done = subprocess.run(
        [sys.executable, "-c", program(PROGRAM)], input="{}", capture_output=True, text=True, timeout=30
    )
    assert json.loads(done.stdout) == {}


def test_one_node_alone_is_asked_nothing():
    def never(*_):
        raise AssertionError("asked")

    assert hold(never, (), Wanted()) == ()


def test_what_kept_a_node_from_the_meeting_is_the_reason_of_all_its_calls(places):
    reply = Reply("n1", None, "Address already in use", 0.0, 1.0)
    assert [(call.called, call.seconds, call.trouble) for call in calls_of(reply, places)] == [
        ("n2", None, "Address already in use"),
        ("n3", None, "Address already in use"),
    ]


def test_nodes_that_share_an_address_meet_at_different_ports():
    meeting_places = places_of(
        [ExaminedNode("n1", None, FACTS), ExaminedNode("n2", "gone"), ExaminedNode("n3", None, FACTS)]
    )
    assert {name: place.port for name, place in meeting_places.items()} == {"n1": 29500, "n3": 29501}


def many(count: int) -> dict[str, MeetingNode]:
    return {f"n{number}": MeetingNode(f"n{number}", "10.0.0.1", number) for number in range(count)}


def test_up_to_some_dozen_nodes_call_on_every_other():
    places = many(ALL_PAIRS_UP_TO)
    assert {len(peers_of(name, places)) for name in places} == {ALL_PAIRS_UP_TO - 1}


@pytest.mark.parametrize("count", [ALL_PAIRS_UP_TO + 1, 1000])
def test_of_very_many_each_calls_on_few_is_called_by_the_same_and_the_first_by_all(count):
    places = many(count)
    called = {name: {peer.node for peer in peers_of(name, places)} for name in places}
    assert called["n0"] == places.keys() - {"n0"}
    assert all(name in called[peer] for name, peers in called.items() for peer in peers)
    assert {len(peers) for name, peers in called.items() if name != "n0"} <= set(range(10, 23))
