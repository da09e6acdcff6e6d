"""What ranks on another machine leave in `profile/` comes home whole, however large and slowly taken."""

from __future__ import annotations

import hashlib
import os
import signal
import sys
import threading
import time

import pytest
from small_jobs import HANG_GUARD_SECONDS, PATIENT
from spoken_agents import Pipes, encoded, unreachable

from trainmark.launch import session as home_session
from trainmark.launch.agent import main as agent_main
from trainmark.launch.agent.wire import BACKLOG_BYTES, Wire
from trainmark.launch.bundle import boot_command
from trainmark.launch.carrier import PipeChannel
from trainmark.launch.connection import AgentConnection
from trainmark.launch.job import Job
from trainmark.launch.nodes import Node
from trainmark.launch.session import GRACE_SECONDS, AgentSession, make_folders
from trainmark.launch.watch import watch

PIECE = 1 << 20
PIECES = 3 * BACKLOG_BYTES // PIECE
# Bytes that repeat nowhere, so that a piece that is missing, doubled or out of order is seen.
LEAVES_A_PROFILE = f"""
import hashlib, os
folder = os.environ["TRAINMARK_PROFILE"]
os.makedirs(folder)
with open(folder + "/rank0-detail.json.gz", "wb") as file:
    for number in range({PIECES}):
        file.write(hashlib.shake_128(b"%d" % number).digest({PIECE}))
for name in "rank0.json.part", "rank0-detail.json.part.tmp":
    with open(folder + "/" + name, "w") as file:
        file.write("half of ")
"""


def profile_digest() -> str:
    pieces = (hashlib.shake_128(b"%d" % number).digest(PIECE) for number in range(PIECES))
    return hashlib.sha256(b"".join(pieces)).hexdigest()


def start(folder, scratch) -> tuple[Job, AgentSession]:
    """Start the rank as on another node: in a scratch of its own, which goes with its agent."""
    make_folders(folder)
    job = Job(("rank",), {}, folder, folder, nodes=1, ranks_per_node=1)
    connection = AgentConnection(Node("node1"), PipeChannel(boot_command(sys.executable)))
    connection.send({"do": "greet", "patience": HANG_GUARD_SECONDS})
    rank = {
        "rank": 0,
        "command": [sys.executable, "-c", LEAVES_A_PROFILE],
        "environment": {"TRAINMARK_PROFILE": str(folder / "profile")},
        "unset": [],
        "folder": "/",
        "log": str(job.log(0)),
        "secrets": [],
    }
    connection.send(
        {
            "do": "start",
            "grace": GRACE_SECONDS,
            "folder": str(folder),
            "scratch": str(scratch),
            "places": {},
            "environment": {},
            "node": "node1",
            "gpus": False,
            "ranks": [rank],
        }
    )
    return job, AgentSession(job, [connection], "mark", (), unreachable)


@pytest.fixture
def scratch(tmp_path):
    folder = tmp_path / "scratch"
    folder.mkdir()
    return folder


def test_a_profile_larger_than_the_backlog_comes_home_whole(tmp_path, scratch):
    job, session = start(tmp_path / "home", scratch)
    time.sleep(1.0)  # home has other things to do: the agent has nobody to send to, and its rank ends
    ending = watch(session, job, PATIENT, lambda: False, lambda: None)
    assert ending.exits == {0: 0}, job.log(0).read_text()
    (trace,) = (tmp_path / "home" / "profile").iterdir()
    assert hashlib.sha256(trace.read_bytes()).hexdigest() == profile_digest()
    assert list(scratch.iterdir()) == []


@pytest.fixture
def agent(scratch):
    """An agent in this process, whose home is the other end of two pipes."""
    handler = signal.getsignal(signal.SIGCHLD)
    home = Pipes()
    agent = agent_main.Agent(Wire(home.hears, home.says))
    agent.scratch = scratch
    yield agent, home
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGCHLD, handler)
    agent.selector.close()
    os.close(agent.child_left)
    home.close()


def test_an_agent_goes_on_sending_for_as_long_as_home_reads(agent, scratch, monkeypatch):
    agent, home = agent
    monkeypatch.setattr(agent_main, "LAST_WORDS_SECONDS", 0.3)
    (scratch / "profile").mkdir()
    left = scratch / "profile" / "rank0-detail.json.gz"
    left.write_bytes(os.urandom(2 * BACKLOG_BYTES))
    agent.send_events()
    assert agent.wire.clogged  # as at the end of ranks that have just written their profiles
    received = bytearray()

    def read_slowly() -> None:
        while chunk := os.read(home.incoming, 1 << 16):
            received.extend(chunk)
            time.sleep(0.004)  # 16 MB in a second or more

    reader = threading.Thread(target=read_slowly)
    reader.start()
    agent.send_rest()
    agent.wire.drain(HANG_GUARD_SECONDS)
    os.close(home.says)
    reader.join()
    home.says = os.open(os.devnull, os.O_WRONLY)  # for the fixture to close
    assert len(received) > left.stat().st_size
    assert received.endswith(left.read_bytes()[-1000:])


def test_an_agent_whose_home_reads_nothing_gives_up(agent, scratch, monkeypatch):
    agent, _ = agent
    monkeypatch.setattr(agent_main, "LAST_WORDS_SECONDS", 0.1)
    (scratch / "profile").mkdir()
    (scratch / "profile" / "rank0-detail.json.gz").write_bytes(bytes(2 * BACKLOG_BYTES))
    began = time.monotonic()
    agent.send_rest()
    assert time.monotonic() - began < HANG_GUARD_SECONDS / 2 and agent.wire.clogged


def test_home_waits_for_what_still_arrives_after_the_ranks_have_ended(tmp_path, monkeypatch):
    monkeypatch.setattr(home_session, "GRACE_SECONDS", 0.0)
    monkeypatch.setattr(home_session, "STOP_SECONDS", 0.5)
    make_folders(tmp_path)
    job = Job(("true",), {}, tmp_path, tmp_path, nodes=1, ranks_per_node=1)
    channel = Pipes()
    connection = AgentConnection(Node("node1"), channel, patience=HANG_GUARD_SECONDS)
    session = AgentSession(job, [connection], "mark", (), unreachable)
    os.write(channel.says, encoded({"event": "exited", "rank": 0, "code": 0, "oom_kills": 0}))

    def send_late() -> None:
        for number in range(15):
            time.sleep(0.1)
            grew = {"event": "grew", "part": "profile", "file": "rank0.json"}
            os.write(channel.says, encoded(grew, b"%02d" % number))
        os.write(channel.says, encoded({"event": "gone"}))

    sender = threading.Thread(target=send_late)
    sender.start()
    # The channel stays open until nobody writes into it any more.
    monkeypatch.setattr(home_session, "close_all", lambda connections: (sender.join(), [0])[1])
    ending = watch(session, job, PATIENT, lambda: False, lambda: None)
    assert ending.exits == {0: 0}
    arrived = (tmp_path / "profile" / "rank0.json").read_bytes()
    assert arrived == b"".join(b"%02d" % number for number in range(15))
    channel.close()
