"""docs/cluster.md against the launchers and the files that it describes."""

from dataclasses import fields

import pytest
from doc_pages import ROOT, blocks, code, page, section, table

from trainmark.base.secrets import is_secret
from trainmark.launch import hosts, options
from trainmark.launch.connection import PATIENCE_SECONDS
from trainmark.launch.nodes import Node
from trainmark.runner import run

PAGE = page("docs/cluster.md")
INVENTORY = ROOT / "examples" / "cluster" / "inventory.yaml"
HOSTFILE = ROOT / "examples" / "cluster" / "hostfile"
SOURCE = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "src" / "trainmark").rglob("*.py"))
SAID_BY_SSH = {"Could not resolve hostname", "Permission denied", "Host key verification failed"}
MESSAGES = [
    words for row in table(section(PAGE, "What it says, and what to do")) for words in code(row["message"])
]


def tables(title):
    parts = section(PAGE, title).split("\n\n")
    return [table(part) for part in parts if part.startswith("|")]


def test_every_launcher_is_in_the_table_and_no_other():
    named = [code(row["launcher"])[0] for row in tables("The launchers")[0]]
    assert sorted(named) == sorted(options.names())


def test_every_key_of_an_inventory_is_in_the_table_and_no_other():
    _, keys = tables("Hosts, three ways")
    assert [code(row["key"])[0] for row in keys] == [field.name for field in fields(Node)]


def test_the_inventory_of_the_page_is_the_example():
    assert blocks(PAGE, "yaml") == [INVENTORY.read_text(encoding="utf-8")]


def test_the_inventory_is_understood_as_the_page_says():
    nodes = hosts.from_inventory(INVENTORY)
    assert [(node.slots, node.interface) for node in nodes] == [(8, "ib0")] * 3 + [(4, "eth0")]
    assert (nodes[3].devices, nodes[3].usual_address) == ((0, 1, 2, 3), "10.0.0.4")
    assert [node.name for node in hosts.labelled(nodes, ["rack1"])] == ["node1", "node2"]


def test_the_hostfile_names_four_nodes_of_eight():
    nodes = hosts.from_hostfile(HOSTFILE)
    assert [(node.name, node.slots) for node in nodes] == [(f"node{index}", 8) for index in range(1, 5)]


def test_the_silence_after_which_a_node_is_lost_is_as_the_page_says():
    assert f"After {PATIENCE_SECONDS:.0f} s of silence" in PAGE


def test_the_largest_program_that_is_sent_is_as_the_page_says():
    assert f"{run.LARGEST_PROGRAM_BYTES >> 20} MiB at most" in PAGE


def test_the_names_that_the_page_calls_secrets_are_taken_for_secrets():
    (line,) = [part for part in PAGE.split("\n- ") if "looks like a secret (" in part]
    assert all(map(is_secret, code(line.partition("(")[2].partition(")")[0])))


@pytest.mark.parametrize("message", [message for message in MESSAGES if message not in SAID_BY_SSH])
def test_a_message_with_advice_is_one_that_is_still_said(message):
    template = message.replace(f"{PATIENCE_SECONDS:.0f} s", "{self.patience:.0f} s")
    assert template in SOURCE
