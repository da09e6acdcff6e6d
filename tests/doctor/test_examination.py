"""The whole way on several nodes that are processes here: asked, met, judged."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from local_nodes import LocalNode, LocalNodes, local_nodes
from smi import path_with_smi

from trainmark.machine.diagnosis import ESSENTIAL, examine
from trainmark.machine.examination import Interpreter, Wanted
from trainmark.machine.findings import FindingMark


def wanted(ask, **more) -> Wanted:
    # Not the usual ports: somebody may use them here.
    return Wanted(addresses=ask.addresses, ports=tuple(range(47310, 47318)), **more)


def red(diagnosis) -> list[tuple[str, str]]:
    return [
        (finding.check, finding.node) for finding in diagnosis.findings if finding.mark is FindingMark.BAD
    ]


def home_with_environment(folder: Path, record: str) -> dict[str, str]:
    """A home folder whose ~/env has one package with this RECORD."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder / "env")], check=True)
    (site,) = (folder / "env").glob("lib/python3*/site-packages")
    info = site / "torch-2.13.0.dist-info"
    info.mkdir()
    (info / "RECORD").write_text(record)
    return {"HOME": str(folder)}


def test_equal_nodes_reach_each_other_and_are_refused_nothing():
    ask = local_nodes(3)
    diagnosis = examine(ask, wanted(ask, interpreters=(Interpreter("python", sys.executable),)))
    assert diagnosis.refusals == ()
    assert {call.caller for call in diagnosis.examined.calls} == {"n1", "n2", "n3"}
    assert all(call.seconds is not None for call in diagnosis.examined.calls)


def test_a_node_that_does_not_answer_is_red_and_the_others_are_still_examined():
    ask = local_nodes(3, before=("/no/such/ssh",))
    diagnosis = examine(ask, wanted(ask))
    assert [(each.check, each.node) for each in diagnosis.refusals] == [("answers", "n3")]
    assert {call.called for call in diagnosis.examined.calls} == {"n1", "n2"}
    assert {each.node for each in diagnosis.findings if each.check == "open files"} == {"n1", "n2"}


def test_the_same_environment_with_other_contents_is_refused(tmp_path):
    (tmp_path / "one").mkdir()
    (tmp_path / "two").mkdir()
    one = home_with_environment(tmp_path / "one", "torch/a.py,sha256=abc,1\n")
    two = home_with_environment(tmp_path / "two", "torch/a.py,sha256=xyz,1\n")
    ask = LocalNodes(
        LocalNode("n1", "127.0.0.11", environment=one),
        LocalNode("n2", "127.0.0.12", environment=one),
        LocalNode("n3", "127.0.0.13", environment=two),
    )
    pytorch = Interpreter("pytorch", "~/env/bin/python", "trainmark frameworks install pytorch")
    diagnosis = examine(ask, wanted(ask, interpreters=(pytorch,)), ESSENTIAL)
    assert [(each.check, each.node) for each in diagnosis.refusals] == [("environment hash", "n3")]


def test_a_node_with_a_lower_limit_and_one_with_a_gpu_stand_out(tmp_path):
    if shutil.which("prlimit") is None:
        pytest.skip("no prlimit here")
    ask = LocalNodes(
        LocalNode("n1", "127.0.0.11"),
        LocalNode("n2", "127.0.0.12", before=("prlimit", "--nofile=512:512")),
        LocalNode("n3", "127.0.0.13", environment={"PATH": path_with_smi(tmp_path)}),
    )
    diagnosis = examine(ask, wanted(ask))
    assert red(diagnosis) == [("devices", "n3"), ("processes on devices", "n3")]
    assert ("open files", "n2") in [
        (each.check, each.node) for each in diagnosis.findings if each.mark is FindingMark.WARN
    ]


def test_a_dataset_that_one_node_lacks_is_red_there(tmp_path):
    (tmp_path / "one" / "data").mkdir(parents=True)
    (tmp_path / "one" / "data" / "a").write_bytes(b"1")
    ask = LocalNodes(
        LocalNode("n1", "127.0.0.11", environment={"HOME": str(tmp_path / "one")}),
        LocalNode("n2", "127.0.0.12", environment={"HOME": str(tmp_path / "two")}),
    )
    assert red(examine(ask, wanted(ask, dataset="~/data"))) == [("dataset", "n2")]


def test_a_dataset_that_cannot_be_read_in_time_leaves_the_other_facts_of_the_node():
    ask = local_nodes(2)
    asked = []

    def impatient(program, given, limit):
        asked.append(program)
        return ask(program, given, 0.001 if len(asked) == 2 else limit)

    impatient.nodes = ask.nodes
    diagnosis = examine(impatient, wanted(ask, dataset="/tmp"))
    assert red(diagnosis) == [("dataset", "n1"), ("dataset", "n2")]
    assert all(node.facts for node in diagnosis.examined.nodes)


def test_the_json_has_every_fact_and_every_finding():
    ask = local_nodes(2)
    document = examine(ask, wanted(ask)).as_dict()
    assert [node["facts"]["address"] for node in document["nodes"]] == ["127.0.0.11", "127.0.0.12"]
    assert {finding["node"] for finding in document["findings"]} == {"n1", "n2"}
    assert len(document["calls"]) == 2
