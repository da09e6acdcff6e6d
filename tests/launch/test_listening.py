"""A node is given up for its silence only: what we ourselves missed, starved or stopped, does not count."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator

import pytest
from spoken_agents import Pipes, encoded, unreachable

from trainmark.launch.agent.main import Agent
from trainmark.launch.agent.wire import ClosedError, Wire
from trainmark.launch.connection import AgentConnection, gather
from trainmark.launch.job import Job
from trainmark.launch.nodes import Node
from trainmark.launch.session import AgentSession, make_folders

PATIENCE = 8.0
STARVED = 60.0
ALIVE = encoded({"event": "alive"})


class Clock:
    """The monotonic clock, which goes on when the test says so."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(time, "monotonic", clock)
    return clock


@pytest.fixture
def channels() -> Iterator[tuple[Pipes, Pipes]]:
    both = Pipes(), Pipes()
    yield both
    for channel in both:
        channel.close()


@pytest.fixture
def session(tmp_path, clock, channels) -> Iterator[AgentSession]:
    """Two nodes that have been heard of now."""
    make_folders(tmp_path)
    job = Job(("true",), {}, tmp_path, tmp_path, nodes=2, ranks_per_node=1)
    nodes = [
        AgentConnection(Node(f"node{number}"), channel, patience=PATIENCE)
        for number, channel in enumerate(channels)
    ]
    session = AgentSession(job, nodes, "mark", (), unreachable)
    yield session
    session._poller.close()
    session._files.close()


@pytest.fixture
def agent(channels) -> Iterator[Agent]:
    before = signal.getsignal(signal.SIGCHLD)
    agent = Agent(Wire(channels[0].incoming, channels[0].outgoing))
    yield agent
    signal.signal(signal.SIGCHLD, before)
    signal.set_wakeup_fd(-1)
    agent.selector.close()
    os.close(agent.child_left)


def test_what_came_while_the_harness_was_busy_with_another_node_is_heard_first(
    session, clock, channels, monkeypatch
):
    def slow(*_) -> None:  # the harness gets no processor; meanwhile the other node speaks
        clock.now += STARVED
        os.write(channels[1].says, ALIVE)

    monkeypatch.setattr(session._files, "add_samples", slow)
    os.write(channels[0].says, encoded({"event": "sampled"}, b"x"))
    session.exits(0.0)
    assert session.lost() is None and not session.doubtful()


def test_time_in_which_nobody_listened_is_no_silence_of_a_node(session, clock):
    clock.now += STARVED  # stopped, and what carries the nodes' words as well
    session.exits(0.0)
    assert session.lost() is None


def test_a_node_that_says_nothing_is_lost_all_the_same(session, clock, channels):
    for _ in range(5):
        os.write(channels[0].says, ALIVE)
        clock.now += STARVED
        session.exits(0.0)
    assert session.lost().node == "node1" and "nothing was heard of it" in session.lost().reason


def test_half_a_message_is_a_sign_of_life(session, clock, channels):
    words = encoded({"event": "sampled"}, b"x" * 20)
    for place in range(0, len(words) - 1, 2):
        for channel in channels:
            os.write(channel.says, words[place : place + 2])
        clock.now += 1.0
        session.exits(0.0)
    assert session.lost() is None


def test_an_answer_that_waits_to_be_read_is_not_late(clock, channels, monkeypatch):
    connections = [AgentConnection(Node(f"node{n}"), channel) for n, channel in enumerate(channels)]
    receive = AgentConnection.receive

    def slow(connection):
        clock.now += STARVED
        os.write(channels[1].says, encoded({"event": "answer"}))
        return receive(connection)

    monkeypatch.setattr(connections[0], "receive", lambda: slow(connections[0]))
    os.write(channels[0].says, encoded({"event": "answer"}))
    answers = gather(connections, "answer", limit=10.0)
    assert [answer[0]["event"] for answer in answers] == ["answer", "answer"]


def test_an_agent_that_was_starved_does_not_take_home_for_silent(clock, agent):
    agent.patience = PATIENCE
    agent.clock.look()
    clock.now += STARVED  # a slow disk, between what it heard and the look at the clock
    agent.pulse()
    with pytest.raises(ClosedError, match="home fell silent"):
        for _ in range(5):
            clock.now += STARVED
            agent.clock.look()
            agent.pulse()
