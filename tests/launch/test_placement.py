from __future__ import annotations

from pathlib import Path

from trainmark.launch.agent.network import free_ports
from trainmark.launch.job import Job
from trainmark.launch.placement import LOOPBACK, PEERS, Seat, placement


def test_every_rank_is_told_an_address_of_its_own_for_each_of_them():
    job = Job(("true",), {}, Path("/"), Path("/trial"), nodes=1, ranks_per_node=3)
    master, *ports = free_ports(LOOPBACK, 4)
    peers = [f"127.0.0.1:{port}" for port in ports]
    seat = Seat("here", LOOPBACK, "lo", tuple(ports))
    told = [placement(job, rank, [seat], master, "mark") for rank in range(3)]
    assert [each["RANK"] for each in told] == ["0", "1", "2"]
    assert {each[PEERS] for each in told} == {",".join(peers)}
    assert len({master, *ports}) == 4
