"""What a node sends home is its word alone: it writes nowhere else, and ends its own trial at most."""

import json
import os

import pytest
from spoken_agents import Pipes, encoded, unreachable

from trainmark.launch.connection import AgentConnection
from trainmark.launch.job import Job
from trainmark.launch.nodes import Node
from trainmark.launch.outcome import Outcome, outcome_of
from trainmark.launch.session import AgentSession, make_folders
from trainmark.launch.watch import TrialLimits, watch

EXITED = encoded({"event": "exited", "rank": 0, "code": 0, "oom_kills": 0}) + encoded({"event": "gone"})


@pytest.fixture
def home(tmp_path):
    folder = tmp_path / "runs" / "trial"
    make_folders(folder)
    return folder


def run_trial(home, *words: bytes):
    """How a trial of one rank ends whose node says this and then no more, and the files that it leaves."""
    job = Job(("true",), {}, home, home, nodes=1, ranks_per_node=1)
    channel = Pipes()
    session = AgentSession(
        job, [AgentConnection(Node("node1"), channel, patience=0.3)], "mark", (), unreachable
    )
    for word in words:
        os.write(channel.says, word)
    ending = watch(session, job, TrialLimits(trial=20, silence=20), lambda: False, lambda: None)
    files = {str(path.relative_to(home.parents[1])) for path in home.parents[1].rglob("*") if path.is_file()}
    return outcome_of(ending, {}), {name.removeprefix("runs/trial/") for name in files}


def test_what_an_honest_node_says_is_kept(home):
    words = [
        encoded({"event": "grew", "part": "events", "file": "rank0.jsonl"}, b"{}\n"),
        encoded({"event": "output", "rank": 0, "mono": 1.0}, b"hello\n"),
        EXITED,
    ]
    judgement, files = run_trial(home, *words)
    assert judgement.outcome is Outcome.OK
    assert files == {"events/rank0.jsonl", "logs/rank0.log", "logs/rank0.arrivals"}


@pytest.mark.parametrize(
    "name", ["../../x", "/tmp/x", "..", ".hidden", "a/b", "", "x" * 200, "rank0.jsonl\n", "\0", "a\\b", "ä"]
)
def test_a_file_that_would_lie_elsewhere_is_not_written(home, name):
    judgement, files = run_trial(
        home, encoded({"event": "grew", "part": "events", "file": name}, b"x"), EXITED
    )
    assert judgement.outcome is Outcome.OK and files == set()


@pytest.mark.parametrize(
    "message",
    [
        {"event": "grew", "part": "events", "file": 5},
        {"event": "grew"},
        {"event": "output", "rank": 1, "mono": 1.0},
        {"event": "output", "rank": -1, "mono": 1.0},
        {"event": "output", "rank": "../0", "mono": 1.0},
        {"event": "output", "rank": [0], "mono": 1.0},
        {"event": "output", "rank": 0, "mono": "now"},
        {"event": "output", "rank": 0},
        {"event": "exited", "rank": {}, "code": 0, "oom_kills": 0},
        {"event": "exited", "rank": 0, "code": "x", "oom_kills": 0},
        {"event": "exited", "rank": 7, "code": 0, "oom_kills": 0},
        {"event": "exited", "rank": 0},
        {"event": "trouble", "reason": 7},
        {"event": "full"},
        {"event": ["gone"]},
        {"event": "gone"},
        {"nothing": 1},
    ],
    ids=json.dumps,
)
def test_a_message_that_makes_no_sense_loses_the_node_and_nothing_else(home, message):
    judgement, files = run_trial(home, encoded(message, b"x"))
    assert (judgement.outcome, judgement.node, files) == (Outcome.LOST, "node1", set())


@pytest.mark.parametrize(
    "line",
    [
        b"no json\n",
        b"\xff\xfe\n",
        b"[1, 2]\n",
        b"null\n",
        b'{"event": "alive", "bytes": -1}\n',
        b'{"event": "alive", "bytes": "many"}\n',
        b'{"event": "alive", "bytes": 1e9}\n',
        b'{"event": "alive", "bytes": 99999999999999}\n',
        b"[" * 50_000 + b"\n",
        b"9" * 50_000 + b"\n",
    ],
)
def test_what_is_no_message_at_all_loses_the_node(home, line):
    judgement, files = run_trial(home, line)
    assert (judgement.outcome, judgement.node, files) == (Outcome.LOST, "node1", set())


def test_what_a_node_says_cannot_move_the_cursor(home):
    reason = "\x1b[2J\x1b]0;owned\x07 no luck " + "x" * 5000
    judgement, _ = run_trial(home, encoded({"event": "trouble", "reason": reason}))
    assert judgement.detail.isprintable() and len(judgement.detail) < 400
