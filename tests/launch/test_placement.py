from __future__ import annotations

import subprocess
from pathlib import Path

from trainmark.launch.agent.ranks import free_ports
from trainmark.launch.job import LOOPBACK, PEERS, Job, Placement, RankSlot


def test_every_rank_is_told_an_address_of_its_own_for_each_of_them():
    job = Job(("true",), {}, Path("/"), Path("/trial"), nodes=1, ranks_per_node=3)
    master, *ports = free_ports(LOOPBACK, 4)
    peers = [f"127.0.0.1:{port}" for port in ports]
    rank_slot = RankSlot("here", LOOPBACK, "lo", tuple(ports))
    environments = [Placement(job, [rank_slot], master, "mark").of(rank) for rank in range(3)]
    assert [each["RANK"] for each in environments] == ["0", "1", "2"]
    assert {each[PEERS] for each in environments} == {",".join(peers)}
    assert len({master, *ports}) == 4


def placed(nodes: int) -> Placement:
    job = Job(("true",), {}, Path("/"), Path("/trial"), nodes, ranks_per_node=8)
    ports = tuple(range(40000, 40008))
    rank_slots = [RankSlot(f"n{n}", f"10.0.{n >> 8}.{n & 255}", "eth0", ports) for n in range(nodes)]
    return Placement(job, rank_slots, 29500, "mark")


def test_what_ranks_have_in_common_is_made_once_and_the_rest_is_their_own():
    thousand_nodes = placed(1000)
    assert thousand_nodes.common["WORLD_SIZE"] == "8000" and PEERS not in thousand_nodes.own(7999)
    assert thousand_nodes.own(7999) == {
        "RANK": "7999",
        "LOCAL_RANK": "7",
        "NODE_RANK": "999",
        "GLOO_SOCKET_IFNAME": "eth0",
        "TRAINMARK_NODE": "n999",
        "NCCL_SOCKET_IFNAME": "=eth0",
    }


def test_all_ranks_meet_at_the_first_node():
    assert placed(3).of(20)["MASTER_ADDR"] == "10.0.0.0"


def test_peers_that_no_program_could_be_started_with_are_left_out():
    variables = {nodes: placed(nodes).common.get(PEERS) for nodes in (800, 1000)}
    assert variables[1000] is None
    subprocess.run(["true"], env={PEERS: variables[800]}, check=True)


def test_a_program_that_starts_its_own_ranks_has_no_variable_of_a_rank():
    job = Job(("true",), {}, Path("/"), Path("/trial"), 1, ranks_per_node=1, starts_own_ranks=True)
    slot = RankSlot("here", LOOPBACK, "lo", (40000,), devices=(0,))
    variables = {"TRAINMARK_EVENTS": "/trial/events", "TRAINMARK_JOB": "mark", "TRAINMARK_NODE": "here"}
    assert Placement(job, [slot], 29500, "mark").of(0) == variables
