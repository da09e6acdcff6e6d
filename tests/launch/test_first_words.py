"""What a node says first is not trusted either."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from trainmark.launch.connect import hello_of
from trainmark.launch.launcher import ports_from_answer
from trainmark.launch.nodes import Node, NodeError

POST = SimpleNamespace(node=Node("node1"))
HELLO = {"received": 0.0, "host": "a", "mono": 1.0, "addresses": {"eth0": "10.0.0.1"}, "reached_at": None}


def test_a_greeting_is_taken_with_the_way_from_its_clock_to_ours():
    hello = hello_of(POST, HELLO)
    assert hello["addresses"] == {"eth0": "10.0.0.1"} and hello["reached_at"] is None
    assert isinstance(hello["offset"], float)


@pytest.mark.parametrize(
    "change",
    [{"addresses": None}, {"addresses": ["eth0"]}, {"mono": "soon"}, {"mono": None}, {"host": ...}],
)
def test_a_greeting_that_is_none_names_the_node(change):
    greeting = {name: value for name, value in {**HELLO, **change}.items() if value is not ...}
    error = hello_of(POST, greeting)
    assert isinstance(error, NodeError) and str(error) == "node1: its greeting is not understood"


@pytest.mark.parametrize("reply", [{}, {"ports": None}, {"ports": ["x"]}, {"ports": 7}])
def test_ports_that_are_none_name_the_node(reply):
    with pytest.raises(NodeError, match="node1: it names no ports"):
        ports_from_answer(POST, (reply, b""))
