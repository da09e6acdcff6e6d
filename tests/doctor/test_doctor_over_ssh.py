"""Four hosts with an sshd each, of which one is harmed in one way at a time."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "cluster"))

from host_network import UnavailableError
from hosts import Hosts

from trainmark.cli.main import main
from trainmark.launch.asking import AskNodes
from trainmark.launch.carriers.ssh import Ssh
from trainmark.launch.launcher import ClusterLauncher
from trainmark.launch.nodes import Node
from trainmark.machine.diagnosis import Diagnosis, examine
from trainmark.machine.examination import Wanted
from trainmark.machine.findings import FindingMark


@pytest.fixture(scope="module")
def bed() -> Iterator[Hosts]:
    try:
        hosts = Hosts(4)
    except UnavailableError as error:
        pytest.skip(str(error))
    with hosts:
        yield hosts


@pytest.fixture
def hosts(bed) -> Iterator[Hosts]:
    yield bed
    bed.heal()


def examined(hosts: Hosts, meeting_seconds: float = 60.0, **more: Any) -> Diagnosis:
    """Time enough for a machine that stalls: nodes that reach each other do not wait for it to pass."""
    nodes = [Node(name) for name in hosts.names]
    ask = AskNodes(ClusterLauncher(Ssh(nodes, hosts.ssh_config)))
    return examine(ask, Wanted(seconds=60.0, meeting_seconds=meeting_seconds, **more))


def red(diagnosis: Diagnosis) -> list[tuple[str, str, str | None]]:
    return [(each.check, each.node, each.peer) for each in diagnosis.findings if each.mark is FindingMark.BAD]


def interface_of(hosts: Hosts, node: str) -> str:
    interfaces = json.loads(hosts.run(node, ["ip", "-json", "address"]).stdout)
    here = hosts.addresses[node]
    return next(each["ifname"] for each in interfaces if here in [one["local"] for one in each["addr_info"]])


def test_equal_hosts_are_green_and_each_reaches_each(hosts):
    diagnosis = examined(hosts)
    assert red(diagnosis) == []
    assert len(diagnosis.examined.calls) == 12
    assert {node.facts.host.name for node in diagnosis.examined.nodes} == set(hosts.names)


def test_the_command_examines_the_hosts_that_are_named(hosts, monkeypatch, capsys):
    where = ["--hosts", ",".join(hosts.names), "--ssh-config", str(hosts.ssh_config)]
    words = [*where, "--python", "/usr/bin/python3"]
    monkeypatch.setattr(sys, "argv", ["trainmark", "doctor", *words, "--json"])
    with pytest.raises(SystemExit) as left:
        main()
    document = json.loads(capsys.readouterr().out)
    assert left.value.code == 0
    assert {node["node"]: node["facts"]["address"] for node in document["nodes"]} == hosts.addresses


def test_another_mtu_is_found_and_its_fix_mends_it(hosts):
    interface = interface_of(hosts, "node3")
    usual = json.loads(hosts.run("node3", ["ip", "-json", "link", "show", interface]).stdout)[0]["mtu"]
    hosts.run("node3", ["ip", "link", "set", "dev", interface, "mtu", "1280"], check=True)
    try:
        (finding,) = [each for each in examined(hosts).findings if each.mark is FindingMark.BAD]
        assert (finding.check, finding.node) == ("interface", "node3")
        command = finding.fix.partition("`sudo ")[2].rstrip("`")
        hosts.run("node3", ["sh", "-c", command], check=True)
        assert red(examined(hosts)) == []
    finally:
        hosts.run("node3", ["ip", "link", "set", "dev", interface, "mtu", str(usual)])


def test_a_host_without_its_sshd_is_red_and_the_others_are_examined(hosts):
    hosts.kill_sshd("node2")
    diagnosis = examined(hosts)
    assert red(diagnosis) == [("answers", "node2", None)]
    assert "sshd" in diagnosis.refusals[0].fix
    assert len(diagnosis.examined.calls) == 6


def test_a_direction_that_is_blocked_is_named_and_the_other_is_not(hosts):
    address = hosts.addresses["node1"]
    rule = ["unreachable", "to", address, "ipproto", "tcp", "dport", "29500-29507"]
    done = hosts.run("node4", ["ip", "rule", "add", *rule])
    if done.returncode:
        pytest.skip(f"ip rule: {done.stderr.strip()}")
    try:
        assert red(examined(hosts, meeting_seconds=12.0)) == [("reaches the others", "node4", "node1")]
    finally:
        hosts.run("node4", ["ip", "rule", "delete", *rule], check=True)


def test_a_dataset_that_lies_on_one_host_only_is_missed_on_the_others(hosts):
    data = hosts.scratch / "data"
    hosts.run("node1", ["sh", "-c", f"mkdir -p {data} && echo 1 > {data}/a"], check=True)
    try:
        findings = red(examined(hosts, dataset=str(data)))
    finally:
        hosts.run("node1", ["rm", "-r", str(data)])
    assert findings == [("dataset", node, None) for node in ("node2", "node3", "node4")]


def test_a_full_disk_is_red_where_it_is_full(hosts):
    hosts.fill_disk("node4")
    assert ("scratch", "node4", None) in red(examined(hosts, scratch=str(hosts.scratch)))


def test_nothing_that_was_sent_is_left_running(hosts):
    examined(hosts)
    assert [process for node in hosts.names for process in hosts.processes(node)] == []
