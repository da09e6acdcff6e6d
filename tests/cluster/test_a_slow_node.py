"""A node that holds the others back is named, with what it costs; a slow link is named by the fabric."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
import time

import pytest

pytest.importorskip("torch", reason="the trials train with PyTorch, which is not installed here")

QUICK = ["--repeats", "1", "--topology", "2n1g", "--set", "image_size=32", "--set", "batch_per_device=4"]
QUICK += ["--set", "threads=1", "--set", "warmup.steps=3", "--set", "measure.steps=15"]


def trainmark(hosts, *words: str, names: str = "node1,node2") -> subprocess.Popen[str]:
    where = ["--hosts", names, "--ssh-config", str(hosts.ssh_config)]
    return subprocess.Popen(
        [sys.executable, "-m", "trainmark", *words, *where],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


class Hindrance:
    """Half of the time the ranks of a host stand still."""

    def __init__(self, hosts, name: str) -> None:
        self.hosts, self.name = hosts, name
        self.over = threading.Event()
        self.thread = threading.Thread(target=self.hinder, daemon=True)

    def __enter__(self) -> None:
        self.thread.start()

    def __exit__(self, *_: object) -> None:
        self.over.set()
        self.thread.join()

    def hinder(self) -> None:
        while not self.over.wait(0.1):
            ranks = [each.pid for each in self.hosts.processes(self.name) if "resnet50.pytorch" in str(each)]
            for number in (signal.SIGSTOP, signal.SIGCONT):
                for pid in ranks:
                    try:
                        self.hosts.kill(self.name, pid, number)
                    except ProcessLookupError:
                        continue
                time.sleep(0.15)


def test_a_node_that_computes_slowly_is_named_with_its_cost(hosts, tmp_path):
    with Hindrance(hosts, "node2"):
        run = trainmark(hosts, "run", "quick", "--runs", str(tmp_path), "--name", "it", *QUICK)
        _, errors = run.communicate(timeout=300)
    assert run.returncode == 0, errors
    (figure,) = (tmp_path / "it" / "trials").glob("*/01/figure.json")
    metrics = json.loads(figure.read_text())["figure"]
    doubts = {doubt["code"]: doubt["message"] for doubt in metrics["doubts"]}
    assert "node2" in doubts["straggler"] and "%" in doubts["straggler"]
    own = {rank["node"]: rank["own_seconds"] for rank in metrics["breakdown"]["ranks"]}
    assert own["node2"] > own["node1"]
    assert "node2" in (tmp_path / "it" / "report.md").read_text()


def test_a_link_that_is_slow_is_named_by_the_fabric_and_kept(hosts, tmp_path):
    hosts.delay("node3", ms=20, loss=0)
    record, drawn = tmp_path / "fabric.json", tmp_path / "map.svg"
    words = ["--seconds", "0.6", "--sizes", "8,4K,256K", "--output", str(record), "--map", str(drawn)]
    # On a busy machine another link can be slow for a moment, and then says so; not three times in a row.
    for _ in range(3):
        run = trainmark(hosts, "fabric", *words, names="node1,node2,node3,node4")
        output, errors = run.communicate(timeout=300)
        assert run.returncode == 0, errors
        assert "node3" in output.splitlines()[-1] or any(
            "slow" in line and "node3" in line for line in output.splitlines()
        )
        verdicts = json.loads(record.read_text())["verdicts"]
        alone = all("node3" in verdict["message"] for verdict in verdicts)
        if alone:
            break
    assert verdicts and alone
    assert "node3" in drawn.read_text()
