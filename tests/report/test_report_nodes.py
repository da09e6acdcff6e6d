"""The nodes of a run stand before the machine that it was started on."""

from trainmark.pages.run.environment import environment_part
from trainmark.store.report import nodes_of


def answer(node: str, **changes):
    host = {"cpus": 64, "memory_total": 1 << 40, "kernel": "6.1", "python": "3.11", "processor": "EPYC"}
    gpu = {"name": "H200", "driver": "580"}
    facts = {
        "host": {**host, **changes},
        "gpus": [gpu] * 8,
        "interface": "ib0",
        "address": f"10.0.0.{node[-1]}",
    }
    return {"node": node, "facts": facts}


def test_what_the_nodes_share_is_said_once_and_what_differs_in_a_table():
    ((name, rows),) = nodes_of({"nodes": [answer("node1"), answer("node2", kernel="6.8")]}).items()
    part = environment_part(name, rows)
    facts = dict(part.facts)
    assert part.title == "Cluster" and (facts["gpus"], facts["gpu"], facts["count"]) == ("8", "H200", "2")
    (table,) = part.tables
    assert table.header == ["node", "kernel", "address"]
    assert table.rows == [["node1", "6.1", "10.0.0.1"], ["node2", "6.8", "10.0.0.2"]]


def test_a_run_on_one_machine_has_no_such_section():
    assert nodes_of({}) == {}


def test_a_node_that_never_answered_is_left_out():
    environment = {"nodes": [answer("node1"), {"node": "node2", "facts": None}]}
    assert [row["node"] for row in nodes_of(environment)["cluster"]] == ["node1"]
