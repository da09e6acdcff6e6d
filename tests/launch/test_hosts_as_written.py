"""Hosts as people write them: a list, a hostfile, an inventory; what is not a host is refused."""

import pytest
from hypothesis import given
from hypothesis import strategies as some

from trainmark.base.errors import UserError
from trainmark.launch.hosts import from_hostfile, from_inventory, from_list, labelled
from trainmark.launch.nodes import Node

INJECTIONS = [
    "-oProxyCommand=touch x",
    "a;touch x",
    "a`touch x`",
    "$(touch x)",
    "a\ntouch x",
    "a b",
    "a|b",
    "a&b",
    "a'b",
    'a"b',
    "a>b",
    "@a",
    "-l@a",
    "user@-oProxyCommand=x",
    "a\0b",
    "a\\b",
    "*",
    "a/b",
    "{a,b}",
]


@pytest.fixture
def file(tmp_path):
    def written(text):
        path = tmp_path / "hosts"
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    return written


def test_a_list_names_hosts_with_slots_and_users():
    assert from_list("node1, node2:8,me@node3") == (Node("node1"), Node("node2", slots=8), Node("me@node3"))


def test_an_ipv6_address_is_not_cut_at_its_colons():
    assert from_list("fe80::1,[fe80::2]") == (Node("fe80::1"), Node("[fe80::2]"))


@pytest.mark.parametrize("name", INJECTIONS)
def test_a_name_that_a_shell_or_an_option_parser_could_obey_is_no_host(name):
    with pytest.raises(UserError, match="cannot name a host"):
        Node(name)


@given(some.text(max_size=20))
def test_any_text_is_a_list_of_harmless_names_or_refused(text):
    try:
        nodes = from_list(text)
    except UserError:
        return
    assert not any(set(node.name) & set(" \n\t;&|<>$`'\"\\*?(){}!#~/,=") for node in nodes)
    assert not any(node.name.startswith("-") for node in nodes)


@pytest.mark.parametrize("text", ["", " , ", "node1,node1", "node1:0", "node1:99999"])
def test_a_list_that_cannot_be_meant_is_refused(text):
    with pytest.raises(UserError):
        from_list(text)


def test_a_hostfile_is_read_as_open_mpi_and_mpich_write_it(file):
    path = file("# ours\nnode1 slots=8  # big\n\nnode2:4\nnode3\nnode4 max_slots = 2\n")
    assert [(node.name, node.slots) for node in from_hostfile(path)] == [
        ("node1", 8),
        ("node2", 4),
        ("node3", None),
        ("node4", 2),
    ]


@pytest.mark.parametrize("text", ["node1 slot=8", "node1 slots=many", "", "# none\n", "a;b\n", b"\xff\xfe"])
def test_a_hostfile_that_is_not_understood_is_refused(file, text):
    with pytest.raises(UserError):
        from_hostfile(file(text))


def test_a_line_that_is_not_understood_is_named(file):
    with pytest.raises(UserError, match=r"hosts:2: 'gpus=8' is not understood"):
        from_hostfile(file("node1\nnode2 gpus=8\n"))


def test_a_hostfile_that_cannot_be_read_is_refused(tmp_path):
    with pytest.raises(UserError, match="cannot be read"):
        from_hostfile(tmp_path / "none")


def test_an_inventory_has_defaults_that_a_node_may_change(file):
    path = file(
        """
        defaults: {interface: ib0, python: /opt/python3, labels: [a100]}
        nodes:
          - node1
          - {name: node2, address: 10.0.0.2, devices: [0, 2], interface: eth0}
          - {name: node3, devices: 4, labels: [h100], scratch: /fast}
        """
    )
    common = {"python": "/opt/python3"}
    assert from_inventory(path) == (
        Node("node1", interface="ib0", labels=("a100",), **common),
        Node(
            "node2", address="10.0.0.2", devices=(0, 2), slots=2, interface="eth0", labels=("a100",), **common
        ),
        Node("node3", slots=4, interface="ib0", labels=("h100",), scratch="/fast", **common),
    )


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("nodes: node1", "a list of `nodes`"),
        ("[node1]", "a list of `nodes`"),
        ("nodes: [{address: a}]", "needs a `name`"),
        ("nodes: [{name: a, adress: b}]", "'adress'; did you mean 'address'"),
        ("nodes: [{name: a, devices: [-1]}]", "`devices`"),
        ("nodes: [{name: a, devices: all}]", "`devices`"),
        ("nodes: [{name: a, devices: 0}]", "1 to 1024 slots"),
        ("nodes: [{name: a, slots: true}]", "1 to 1024 slots"),
        ("nodes: [{name: a, labels: big}]", "`labels`"),
        ("nodes: [{name: a, python: 3}]", "`python`"),
        ("nodes: [{name: a, python: -c}]", "no Python"),
        ("nodes: [{name: a, interface: 'eth0; touch x'}]", "no network interface"),
        ("nodes: [{name: a, address: '$(touch x)'}]", "no address"),
        ("nodes: [a, a]", "twice"),
        ("nodes: [5]", "a name or a mapping"),
        ("nodes: []", "names no host"),
        ("nodes: [a]\ndefaults: [b]", "a name or a mapping"),
    ],
)
def test_an_inventory_that_is_not_understood_is_refused_with_the_reason(file, text, reason):
    with pytest.raises(UserError) as refusal:
        from_inventory(file(text))
    assert reason in str(refusal.value)


def test_labels_choose_the_nodes_that_bear_all_of_them():
    nodes = (Node("a", labels=("x",)), Node("b", labels=("x", "y")), Node("c"))
    assert labelled(nodes, ["x", "y"]) == (nodes[1],)
    with pytest.raises(UserError, match="there are x, y"):
        labelled(nodes, ["z"])


def test_slots_of_thousands_of_digits_are_too_many(tmp_path):
    path = tmp_path / "hosts"
    path.write_text("a slots=" + "9" * 5000)
    for read, written in ((from_list, "a:" + "9" * 5000), (from_hostfile, path)):
        with pytest.raises(UserError, match="1 to 1024 slots"):
            read(written)
