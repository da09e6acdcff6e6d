"""Real ranks on this machine: every link measured, kept and drawn; a failure is one sentence."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest

from trainmark.launch.launcher import LocalLauncher
from trainmark.runner.fabric import FabricError, FabricRequest, measure_fabric
from trainmark.store.measurements import FABRIC, load_fabric
from trainmark.suite.model import Topology

pytest.importorskip("torch", reason="the fabric is measured with PyTorch, which is not here")
sys.path.insert(0, str(Path(__file__).parents[1] / "store"))

from fabricated_runs import fabricate

QUICK = ("--device", "cpu", "--sizes", "8,4K,64K", "--seconds", "0.05")


def measured(ranks: int, python: str = sys.executable, **changes):
    wanted = {"sizes": (8, 4096, 65536), "seconds": 0.05, "device": "cpu", "together": False}
    return measure_fabric(FabricRequest(Topology(1, ranks), **{**wanted, **changes}), LocalLauncher(), python)


def test_four_ranks_give_six_links_and_an_all_reduce():
    fabric = measured(4, seconds=0.5)  # on a busy machine what takes too long is left out
    assert [link.ranks for link in fabric.links] == [(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)]
    assert all(link.same_node for link in fabric.links)
    for link in fabric.links:
        assert [point.bytes for point in link.points] == [8, 4096, 65536]
        assert all(0 < point.low <= point.seconds <= point.high for point in link.points)
    (reduced,) = fabric.all_reduces
    assert (reduced.ranks, reduced.nodes, len(reduced.points)) == (4, 1, 3)


def test_ranks_on_nodes_of_other_names_are_between_nodes(tmp_path):
    """The launcher names the nodes; here an interpreter does it in its place."""
    python = tmp_path / "python"
    python.write_text(
        f'#!/bin/sh\nTRAINMARK_NODE=node$((RANK / 2)) exec {sys.executable} "$@"\n', encoding="utf-8"
    )
    python.chmod(0o755)
    fabric = measured(4, str(python), together=True)
    assert fabric.nodes == ("node0", "node0", "node1", "node1")
    assert [link.ranks for link in fabric.links if link.same_node] == [(0, 1), (2, 3)]
    assert [(each.ranks, each.nodes) for each in fabric.all_reduces] == [(4, 2), (2, 2)]


def test_a_rank_that_fails_ends_it_in_one_sentence(tmp_path):
    python = tmp_path / "python"
    python.write_text(
        f'#!/bin/sh\n[ "$RANK" = 1 ] && echo "no such thing" >&2 && exit 7\nexec {sys.executable} "$@"\n',
        encoding="utf-8",
    )
    python.chmod(0o755)
    with pytest.raises(FabricError, match="rank 1 left with exit code 7: no such thing"):
        measured(2, str(python))


def test_a_port_that_is_taken_once_is_no_failure(tmp_path):
    python = tmp_path / "python"
    python.write_text(
        f'#!/bin/sh\n[ "$RANK" = 1 ] && mkdir {tmp_path}/first 2>/dev/null'
        f' && echo "bind: Address already in use" >&2 && exit 1\nexec {sys.executable} "$@"\n',
        encoding="utf-8",
    )
    python.chmod(0o755)
    assert len(measured(2, str(python)).links) == 1
    assert (tmp_path / "first").is_dir()


def test_more_gpus_than_there_are_is_refused_by_the_ranks():
    import torch

    with pytest.raises(FabricError, match=r"GPUs, but \d+ ranks are to use one each"):
        measured(torch.cuda.device_count() + 1, device="cuda")


def test_the_command_keeps_it_with_the_run_and_draws_it(trainmark, tmp_path):
    fabricate(tmp_path / "runs", "mine", {"1n1g": [100.0, 101.0]})
    result = trainmark("fabric", *QUICK, "--run", "mine", "--map", "map.svg")
    assert result.code == 0
    assert "All-reduce over 2 ranks on 1 node" in result.out
    assert load_fabric(tmp_path / "runs" / "mine").links[0].ranks == (0, 1)
    assert (tmp_path / "map.svg").read_text(encoding="utf-8").startswith("<svg")


def test_json_is_what_is_kept(trainmark, tmp_path):
    result = trainmark("fabric", *QUICK, "--output", "f.json", "--json")
    assert result.code == 0
    document = json.loads(result.out)
    assert document == json.loads((tmp_path / "f.json").read_bytes())
    assert {"schema", "taken", "links", "allreduce", "verdicts"} <= document.keys()


def test_where_a_rank_fails_the_exit_code_is_1_and_what_was_kept_stays(trainmark, tmp_path, monkeypatch):
    path = tmp_path / FABRIC
    path.write_text("former", encoding="utf-8")
    (tmp_path / "torch.py").write_text("raise SystemExit('not today')", encoding="utf-8")
    monkeypatch.setenv(
        "PYTHONPATH", os.pathsep.join(filter(None, [str(tmp_path), os.environ.get("PYTHONPATH")]))
    )
    result = trainmark("fabric", *QUICK, "--output", FABRIC)
    assert result.code == 1
    assert result.out == ""
    assert result.err.splitlines()[-1].endswith("left with exit code 1: not today")
    assert path.read_text(encoding="utf-8") == "former"


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--topology", "4"], "--topology: '4' is not a topology"),
        (["--topology", "1n1g"], "1n1g is one rank, and a link has two"),
        (["--sizes", "8,many"], "--sizes: 'many' is not a size"),
        (["--sizes", "8"], "--sizes: latency and bandwidth need two sizes"),
        (["--seconds", "0"], "0.0 is not in the range"),
        (["--run", "gone"], "there is no run 'gone'"),
        (["--map", "map.png"], "a map is an .svg or an .html file; map.png is neither."),
        (["--output", "gone/f.json"], "there is no folder gone for f.json"),
    ],
)
def test_bad_input_is_one_sentence_before_any_rank_starts(trainmark, words, sentence):
    result = trainmark("fabric", "--device", "cpu", *words)
    assert result.code == 2
    assert sentence in result.err
    assert len(result.err.splitlines()) == 1
