"""nccl-tests where they are on the path: run as they are, read by their columns, never needed."""

from __future__ import annotations

import os

import pytest

pytest.importorskip("torch", reason="the program that runs them is PyTorch's, which is not here")

from trainmark.events import Mark, RunStart
from trainmark.runner.fabric import FabricRequest, fabric_of
from trainmark.suite.model import Topology
from trainmark.workloads.fabric.pytorch import nccl_tests

PRINTS = """\
#!/bin/sh
echo "# asked for $*"
echo "#       size         count      type   redop    root     time   algbw   busbw #wrong"
echo "           8             2     float     sum      -1     6.50    0.00    0.50      0"
"""


@pytest.fixture
def on_the_path(tmp_path, monkeypatch):
    def place(name: str, text: str) -> None:
        program = tmp_path / name
        program.write_text(text, encoding="utf-8")
        program.chmod(0o755)
        monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")

    return place


def test_where_there_are_none_nothing_is_run(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    assert list(nccl_tests([8, 64], 2)) == []


def test_a_program_is_asked_for_the_same_sizes_and_the_gpus_of_the_node(on_the_path):
    on_the_path("all_reduce_perf", PRINTS)
    ((name, text),) = nccl_tests([64, 8, 4096], 4)
    assert name == "all_reduce_perf"
    assert "# asked for -b 8 -e 4096 -f 8 -g 4" in text


def test_a_program_that_fails_is_left_out(on_the_path):
    on_the_path("all_reduce_perf", "#!/bin/sh\nexit 3\n")
    on_the_path("sendrecv_perf", PRINTS)
    assert [name for name, _ in nccl_tests([8, 64], 2)] == ["sendrecv_perf"]


def test_what_it_printed_is_kept_with_its_node():
    text = PRINTS.replace('echo "', "").replace('"', "")
    events = [
        RunStart(0, 1, None, None, facts={"node": "here", "backend": "nccl"}),
        Mark("note", 0, None, None, {"what": "nccl-tests", "program": "sendrecv_perf", "text": text}),
    ]
    fabric = fabric_of(events, FabricRequest(Topology(1, 2), "cuda", (8, 64), 1.0, False), "now")
    (record,) = fabric.nccl_tests
    assert (record["node"], record["program"]) == ("here", "sendrecv_perf")
    assert record["sizes"] == [
        {"bytes": 8, "seconds": pytest.approx(6.5e-6), "bus_bytes_per_second": pytest.approx(0.5e9)}
    ]
