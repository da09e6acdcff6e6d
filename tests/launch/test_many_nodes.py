"""Hundreds of nodes: real agents of this machine behind a stand-in for ssh, watched by the real launcher."""

from __future__ import annotations

import contextlib
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import psutil
import pytest
from small_jobs import HANG_GUARD_SECONDS, left_running, wait_for
from spoken_agents import Pipes, encoded

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks.local_ssh import LocalSsh

from trainmark.launch.asking import AskNodes
from trainmark.launch.carriers.ssh import Ssh
from trainmark.launch.connect import AT_ONCE, Connected, connect
from trainmark.launch.connection import AgentConnection
from trainmark.launch.job import Job
from trainmark.launch.launcher import ClusterLauncher, descriptors_needed
from trainmark.launch.nodes import Node, NodeError
from trainmark.launch.outcome import EndCause
from trainmark.launch.watch import TrialLimits, watch

FEW_OPEN_FILES = 256
RANK = 'echo "{}" > "$TRAINMARK_EVENTS/rank$RANK.jsonl"; echo here; exec sleep %g'
LIMITS = TrialLimits(trial=2 * HANG_GUARD_SECONDS, silence=2 * HANG_GUARD_SECONDS)
HELLO = {"event": "hello", "host": "a", "mono": 1.0, "addresses": {}, "reached_at": None}


@pytest.fixture(scope="module")
def local_ssh() -> Iterator[LocalSsh]:
    with LocalSsh() as ssh:
        yield ssh


@pytest.fixture
def ssh(local_ssh, monkeypatch) -> LocalSsh:
    monkeypatch.setenv("PATH", f"{local_ssh.path}:{os.environ['PATH']}")
    return local_ssh


@pytest.fixture
def few_open_files() -> Iterator[None]:
    """The soft limit, already reached; the hard one stays."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    in_use = [os.open(os.devnull, os.O_RDONLY) for _ in range(FEW_OPEN_FILES)]
    resource.setrlimit(resource.RLIMIT_NOFILE, (FEW_OPEN_FILES, hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    for descriptor in in_use:
        os.close(descriptor)


def nodes_named(*names: str) -> list[Node]:
    return [Node(name, interface="lo") for name in names]


def hosts(count: int) -> list[str]:
    return [f"n{number:04d}" for number in range(count)]


def job_on(folder: Path, nodes: int, seconds: float) -> Job:
    return Job(("sh", "-c", RANK % seconds), {}, folder, folder, nodes, ranks_per_node=1)


def carriers() -> list[str]:
    """The commands of this machine that still hold a connection."""
    commands = []
    for child in psutil.Process().children():
        with contextlib.suppress(psutil.Error):  # one that has ended, whoever started it
            commands.append(" ".join(child.cmdline()))
    return [command for command in commands if "BatchMode" in command]


def test_400_hosts_start_run_and_end_where_few_files_may_be_open(ssh, few_open_files, tmp_path):
    job = job_on(tmp_path, 400, seconds=2)
    session = ClusterLauncher(Ssh(nodes_named(*hosts(400)))).start(job)
    ending = watch(session, job, LIMITS, lambda: False, lambda: None)
    assert (ending.cause, set(ending.exits.values())) == (EndCause.FINISHED, {0})
    assert all(job.log(rank).read_bytes() == b"here\n" for rank in range(400))
    assert len(list((tmp_path / "events").iterdir())) == 400
    assert carriers() == [] and left_running(job) == []


class Here(Ssh):
    """Starts the command of a node on this machine, with the Python that the node names."""

    def words(self, node, command):
        return list(command)


def test_an_agent_runs_and_samples_with_the_oldest_python_that_it_takes(tmp_path):
    job = replace(job_on(tmp_path, 1, seconds=2), gpus=True)
    node = Node("n1", interface="lo", python=python_3_9())
    ending = watch(ClusterLauncher(Here([node])).start(job), job, LIMITS, lambda: False, lambda: None)
    assert (ending.cause, ending.exits) == (EndCause.FINISHED, {0: 0})
    assert '"n1/cpu"' in (tmp_path / "samples.jsonl").read_text()


def python_3_9() -> str:
    pyenv = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv") / "versions"
    pythons = [*map(str, sorted(pyenv.glob("3.9.*/bin/python"))), shutil.which("python3.9")]
    if pythons[0] is None:
        pytest.skip("no Python 3.9 here")
    return pythons[0]


def test_an_agent_that_dies_among_many_is_named_and_nothing_is_left(ssh, tmp_path):
    job = job_on(tmp_path, 150, seconds=600)
    session = ClusterLauncher(Ssh(nodes_named(*hosts(150)))).start(job)
    killed = []

    def kill_one() -> None:
        if not killed and job.events(149).exists():
            killed.append(ssh.agent_of("n0077"))
            os.kill(killed[0], signal.SIGKILL)

    ending = watch(session, job, LIMITS, lambda: False, kill_one)
    assert (ending.cause, ending.loss.node) == (EndCause.NODE_LOST, "n0077")
    assert carriers() == [] and left_running(job) == []


def test_a_host_that_cannot_be_reached_is_named_and_the_others_are_let_go(ssh, tmp_path):
    names = hosts(60)
    names[45] = "dead45"
    with pytest.raises(NodeError, match=r"dead45: .*Connection refused"):
        ClusterLauncher(Ssh(nodes_named(*names))).start(job_on(tmp_path, 60, seconds=1))
    assert carriers() == []
    wait_for(lambda: not any(psutil.pid_exists(ssh.agent_of(name)) for name in names[:32]), "agents to end")


def test_many_are_asked_and_the_one_that_is_dead_or_mute_says_why(ssh, monkeypatch):
    monkeypatch.setattr(Ssh, "hello_seconds", 8.0)
    names = [*hosts(40), "dead1", "mute1"]
    ask = AskNodes(ClusterLauncher(Ssh(nodes_named(*names))))
    program = "import json, sys; print(json.dumps({'told': json.load(sys.stdin)}))"
    replies = ask(program, [{"name": name} for name in names], HANG_GUARD_SECONDS)
    assert [reply.answer for reply in replies[:40]] == [{"told": {"name": name}} for name in names[:40]]
    assert [reply.node for reply in replies if reply.answer is None] == ["dead1", "mute1"]
    assert "Connection refused" in replies[40].trouble and "no answer within" in replies[41].trouble
    assert carriers() == []


def test_connections_are_opened_a_few_dozen_at_a_time():
    nodes = nodes_named(*hosts(3 * AT_ONCE))
    waiting: list[Pipes] = []
    most = [0]

    def reach(node: Node) -> AgentConnection:
        channel = Pipes()
        connection = AgentConnection(node, channel)
        waiting.append(channel)
        most[0] = max(most[0], len(waiting))
        if len(waiting) == AT_ONCE:  # they say hello when so many wait, and not before
            for each in waiting:
                os.write(each.says, encoded(HELLO))
            waiting.clear()
        return connection

    connections = connect(nodes, reach, HANG_GUARD_SECONDS, all_needed=True)
    for each in connections:
        assert isinstance(each, Connected)
        each.connection.close()
    assert (len(connections), most[0]) == (len(nodes), AT_ONCE)


def test_a_hard_limit_that_is_too_low_is_told_in_one_sentence_before_anything_starts(ssh):
    def limited() -> None:
        resource.setrlimit(resource.RLIMIT_NOFILE, (300, 300))

    words = ["doctor", "--hosts", ",".join(hosts(400)), "--python", sys.executable]
    done = subprocess.run(
        [sys.executable, "-m", "trainmark", *words],
        capture_output=True,
        text=True,
        preexec_fn=limited,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).resolve().parents[2] / "src")},
    )
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    sentence = re.search(r"400 nodes need (\d+) open files, .* may open 300 .*; raise", done.stderr)
    assert sentence and descriptors_needed(400) < int(sentence[1]) < descriptors_needed(420)


def test_what_is_needed_for_a_thousand_nodes_is_allowed_on_most_machines():
    assert descriptors_needed(1000) < 4096  # the usual hard limit where it is not higher


def test_each_rank_is_told_of_all_its_peers_without_their_being_sent_to_each_rank_anew(ssh, tmp_path):
    line = 'echo "$RANK $WORLD_SIZE $(echo $TRAINMARK_PEERS | tr , "\\n" | wc -l)"'
    job = Job(("sh", "-c", line), {}, tmp_path, tmp_path, nodes=3, ranks_per_node=4)
    session = ClusterLauncher(Ssh(nodes_named(*hosts(3)))).start(job)
    ending = watch(session, job, LIMITS, lambda: False, lambda: None)
    assert ending.cause is EndCause.FINISHED
    assert [job.log(rank).read_text() for rank in range(12)] == [f"{rank} 12 12\n" for rank in range(12)]


def test_what_is_lent_reaches_all_of_them_and_the_one_that_is_dead_says_why(ssh, tmp_path):
    names = [*hosts(40), "dead1"]
    (tmp_path / "code").mkdir()
    (tmp_path / "code" / "word").write_text("sent")
    launcher = ClusterLauncher(Ssh(nodes_named(*names)))
    with launcher.shipped(tmp_path / "code"):
        show = ["cat", str(tmp_path / "code" / "word")]
        answers = launcher.ask(launcher.nodes, show, [b""] * 41, HANG_GUARD_SECONDS)
    assert [output for _, output in answers[:40]] == [b"sent"] * 40
    assert isinstance(answers[40], NodeError) and answers[40].node == "dead1"
    assert len(list((ssh.path / "home" / "sent").iterdir())) == 1
