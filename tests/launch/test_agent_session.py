"""Several agents heard together: who is to blame when ranks and nodes fall in whatever order."""

import os
import signal
import threading

from spoken_agents import Pipes, encoded, unreachable

from trainmark.launch.connection import AgentConnection
from trainmark.launch.job import Job
from trainmark.launch.nodes import Node
from trainmark.launch.outcome import Outcome, outcome_of
from trainmark.launch.session import AgentSession, make_folders
from trainmark.launch.watch import TrialLimits, watch

GONE = encoded({"event": "gone"})
ALIVE = encoded({"event": "alive"})
ENDED = encoded({"event": "ended"})
TURN_SECONDS = 0.2
PATIENCE_SECONDS = 60.0  # no agent here is ever silent: a machine that stands still must not make one so


def exited(rank, code=0):
    return encoded({"event": "exited", "rank": rank, "code": code, "oom_kills": 0})


def judged(folder, *lives, why_lost=lambda node: None):
    """The judgement of a trial with a node for each life: what its agent says, in turns with the others."""
    make_folders(folder)
    job = Job(("true",), {}, folder, folder, nodes=len(lives), ranks_per_node=1)
    channels = [Pipes() for _ in lives]
    connections = [
        AgentConnection(Node(f"node{number}"), channel, patience=PATIENCE_SECONDS)
        for number, channel in enumerate(channels, 1)
    ]
    session = AgentSession(job, connections, "mark", (), unreachable, why_lost)
    over = threading.Event()

    def speak():
        turn = 0
        while not over.wait(TURN_SECONDS):
            for channel, life in zip(channels, lives, strict=True):
                if turn < len(life):
                    os.write(channel.says, life[turn])
                elif not life or not life[-1].endswith(GONE):
                    os.write(channel.says, ALIVE)
            turn += 1

    def stop():
        over.set()
        speaker.join()
        for rank, (channel, life) in enumerate(zip(channels, lives, strict=True)):
            if not any(words.endswith(GONE) for words in life):
                # As an agent does that is told to stop.
                os.write(channel.says, exited(rank, -signal.SIGTERM) + GONE)
        AgentSession.stop(session)

    speaker = threading.Thread(target=speak)
    speaker.start()
    try:
        # The channels stay open until nobody writes into them any more.
        session.stop = stop
        ending = watch(session, job, TrialLimits(trial=10, silence=10), lambda: False, lambda: None)
    finally:
        over.set()
        speaker.join()
    return outcome_of(ending, {})


def test_a_rank_that_fails_after_another_node_is_done_ends_the_trial(tmp_path):
    done = [exited(0) + GONE]
    fails = [ALIVE, ALIVE, exited(1, 3)]
    judgement = judged(tmp_path, done, fails, [])
    assert (judgement.outcome, judgement.node) == (Outcome.CRASHED, "node2")


def test_ranks_that_are_told_to_end_with_their_agents_are_lost_with_the_allocation(tmp_path):
    cleared = [[exited(rank, -signal.SIGTERM), ENDED + GONE] for rank in range(2)]
    judgement = judged(tmp_path, *cleared, why_lost=lambda node: (node.name, "the job was cancelled"))
    assert judgement.outcome is Outcome.LOST and "the job was cancelled" in judgement.detail


def test_one_rank_that_is_told_to_end_has_crashed(tmp_path):
    judgement = judged(tmp_path, [exited(0, -signal.SIGTERM)], [])
    assert (judgement.outcome, judgement.node) == (Outcome.CRASHED, "node1")


def test_an_agent_that_leaves_before_its_ranks_loses_its_node(tmp_path):
    judgement = judged(tmp_path, [], [GONE])
    assert (judgement.outcome, judgement.node) == (Outcome.LOST, "node2")
