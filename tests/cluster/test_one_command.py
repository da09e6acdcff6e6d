"""One srun or mpirun for all nodes: its agents connect back, and faults end as with one command for each."""

from __future__ import annotations

import signal
import socket
import subprocess
from types import SimpleNamespace

import psutil
import pytest
from light_trials import RING, carry_out, job, rank_pid

from trainmark.launch import launcher as cluster
from trainmark.launch.carriers.mpi import Mpi
from trainmark.launch.carriers.slurm import Slurm
from trainmark.launch.connect import Listener
from trainmark.launch.launcher import ClusterLauncher
from trainmark.launch.nodes import Node
from trainmark.launch.outcome import Outcome

ENDLESS, SHORT = 600.0, 2.0
COMMANDS = {"slurm": "srun", "mpi": "mpirun"}


@pytest.fixture(params=COMMANDS)
def kind(request):
    return request.param


@pytest.fixture
def launcher(kind, hosts, request, monkeypatch):
    monkeypatch.setattr(cluster, "FEWEST_NODES", 2)
    if kind == "slurm":
        for name, value in request.getfixturevalue("slurm").environment.items():
            monkeypatch.setenv(name, value)
        made = ClusterLauncher(Slurm((), 4))
    else:
        nodes = [Node(name, address=hosts.addresses[name]) for name in hosts.names]
        ssh = ("--mca", "plm_rsh_args", f"-F {hosts.ssh_config}")
        made = ClusterLauncher(Mpi(nodes, ssh, hosts.network_cidr))
    yield made
    made.close()


def started(kind: str) -> int:
    """How many of its commands hold connections; srun has a child of its own that only waits."""
    return len([each for each in psutil.Process().children() if each.name() == COMMANDS[kind]])


def test_all_nodes_are_carried_by_one_command(kind, hosts, launcher, tmp_path):
    seen = []
    given = job(tmp_path / "job", RING + "import socket; print(socket.gethostname())", SHORT, 4)
    ended = carry_out(hosts, launcher, given, lambda: seen.append(started(kind)))
    assert (ended.judgement.outcome, ended.leaks, seen) == (Outcome.OK, {}, [1]), ended
    assert launcher.one_by_one is None
    # Each connection is that of the node that it is taken for.
    assert [given.log(rank).read_text().split()[-1] for rank in range(4)] == hosts.names


def kill_rank(hosts):
    hosts.kill("node2", rank_pid(hosts, "node2"), signal.SIGKILL)


def kill_agent(hosts):
    agents = [each for each in hosts.processes("node2") if "b64decode" in each.command]
    hosts.kill("node2", max(agents, key=lambda each: each.pid).pid, signal.SIGKILL)


@pytest.mark.parametrize(
    ("harm", "outcome"),
    [
        (kill_rank, Outcome.CRASHED),
        (kill_agent, Outcome.LOST),
        (lambda hosts: hosts.link_down("node2"), Outcome.LOST),
    ],
    ids=["a-killed-rank", "a-killed-agent", "a-link-that-is-down"],
)
def test_a_fault_on_one_node_is_laid_at_its_door(hosts, launcher, tmp_path, harm, outcome):
    endless = job(tmp_path / "job", RING, ENDLESS, 4)
    ended = carry_out(hosts, launcher, endless, lambda: harm(hosts))
    assert (ended.judgement.outcome, ended.judgement.node) == (outcome, "node2"), ended
    assert ended.leaks == {} and launcher.one_by_one is None


def test_where_agents_cannot_connect_back_each_node_has_a_command_of_its_own(
    kind, hosts, launcher, tmp_path, monkeypatch
):
    monkeypatch.setattr("trainmark.launch.connect.CONNECT_SECONDS", 5.0)
    # An address of this machine that the hosts have no way to.
    monkeypatch.setattr("trainmark.launch.connect.address_towards", lambda host: "127.1.2.3")
    seen = []
    ended = carry_out(
        hosts, launcher, job(tmp_path / "job", RING, SHORT, 4), lambda: seen.append(started(kind))
    )
    assert (ended.judgement.outcome, ended.leaks, seen) == (Outcome.OK, {}, [4]), ended
    assert launcher.one_by_one


def test_the_token_is_on_no_command_line_and_no_rank_is_given_it(hosts, launcher, tmp_path, monkeypatch):
    drawn = SimpleNamespace(token_hex=lambda size: "the-token-of-this-run")
    monkeypatch.setattr("trainmark.launch.connect.secrets", drawn)
    shown = []

    def look() -> None:
        shown.extend(process.command for name in hosts.names for process in hosts.processes(name))
        shown.append(subprocess.run(["ps", "axww"], capture_output=True, text=True).stdout)

    given = job(tmp_path / "job", RING + "print(dict(os.environ))", SHORT, 4)
    carry_out(hosts, launcher, given, look)
    assert "TRAINMARK_PEERS" in given.log(3).read_text()
    assert not any("the-token-of-this-run" in each for each in [*shown, given.log(3).read_text()])


def test_a_stranger_at_the_listener_is_turned_away():
    listener = Listener("127.0.0.1")
    place = (listener.invitation["address"], listener.invitation["port"])
    with socket.create_connection(place) as stranger:
        stranger.sendall(b'{"node": "node1", "nonce": "00", "proof": "guessed"}\n')
        assert listener.accept_all({"node1": Node("node1")}, 0.5, lambda: False) == {}
        assert stranger.recv(100) == b""
    listener.close()
