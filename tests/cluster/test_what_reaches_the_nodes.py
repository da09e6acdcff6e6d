"""Code and environments come to the nodes by their content; what cannot be made alike is refused before."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import venv
from pathlib import Path

import pytest

# Each host of the bed has a /dev/shm of its own: what lies in ours is not there.
PRIVATE = Path("/dev/shm")
TRAIN = """
import marker, os, sys
from trainmark import probe
print("found", marker.TEXT, sys.prefix, os.getcwd())
run = probe.start()
for _ in range(30):
    run.step(samples=1)
run.end()
"""
SUITE = """
workload: {{name: own, command: "{{python}} train.py", reader: probe}}
python: {python}
batch_per_device: 1
topology: 2n1g
repeats: 1
warmup: {{steps: 2}}
measure: {{steps: 20}}
"""


@pytest.fixture
def environment():
    """An environment that only this machine has, with a package in it."""
    folder = PRIVATE / f"trainmark-test-{os.getpid()}"
    venv.create(folder, symlinks=True)
    (packages,) = (folder / "lib").glob("python3*/site-packages")
    (packages / "marker.py").write_text("TEXT = 'the package'\n")
    (packages / "marker-1.0.dist-info").mkdir()
    (packages / "marker-1.0.dist-info" / "METADATA").write_text("Name: marker\nVersion: 1.0\n")
    (packages / "marker-1.0.dist-info" / "RECORD").write_text(f"marker.py,sha256={os.urandom(8).hex()},25\n")
    yield folder
    shutil.rmtree(folder)


@pytest.fixture
def suite(tmp_path, environment):
    folder = tmp_path / "a program's own folder"
    folder.mkdir()
    (folder / "train.py").write_text(TRAIN)
    (folder / "own.yaml").write_text(SUITE.format(python=environment / "bin" / "python"))
    return folder / "own.yaml"


def run(hosts, suite: Path, runs: Path, name: str, *words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "trainmark", "run", str(suite), "--runs", str(runs), "--name", name]
    where = ["--hosts", "node1,node2", "--ssh-config", str(hosts.ssh_config)]
    return subprocess.run([*command, *where, *words], capture_output=True, text=True, timeout=200)


def log_texts(runs: Path, name: str) -> list[str]:
    logs = sorted((runs / name).glob("trials/*/01/logs/rank*.log"))
    return [log.read_text().strip() for log in logs]


def test_an_environment_and_a_program_that_a_node_lacks_are_sent_once(hosts, suite, environment, tmp_path):
    for name in ("first", "second"):
        done = run(hosts, suite, tmp_path, name)
        assert done.returncode == 0, done.stderr
    first, second = log_texts(tmp_path, "first"), log_texts(tmp_path, "second")
    assert len(first) == 2 and first == second
    for line in first:
        assert line.startswith("found the package")
        # Neither the environment nor the program's folder is the one of this machine.
        assert str(environment) not in line and str(suite.parent) not in line and "/sent/" in line


def test_an_environment_that_changed_here_is_sent_anew(hosts, suite, environment, tmp_path):
    assert run(hosts, suite, tmp_path, "before").returncode == 0
    (marker,) = environment.glob("lib/python3*/site-packages/marker.py")
    marker.write_text("TEXT = 'another package'\n")
    (record,) = environment.glob("lib/python3*/site-packages/marker-1.0.dist-info/RECORD")
    record.write_text(f"marker.py,sha256={os.urandom(8).hex()},30\n")
    assert run(hosts, suite, tmp_path, "after").returncode == 0
    assert all(line.startswith("found another package") for line in log_texts(tmp_path, "after"))


def test_an_interpreter_that_is_no_environment_must_be_on_every_node(hosts, suite, environment, tmp_path):
    (environment / "pyvenv.cfg").unlink()
    done = run(hosts, suite, tmp_path, "it")
    assert done.returncode == 2
    assert "is not the same on node1, node2 as here" in done.stderr
    assert not (tmp_path / "it").exists()


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("--interface", "ib7"), "node1 has no interface ib7"),
        (("--hosts", "node1,nowhere"), "nowhere"),
        (("--hosts", "node1:9,node2"), "node1 has"),
    ],
)
def test_nodes_that_cannot_run_it_are_named_before_anything_is_made(hosts, suite, tmp_path, words, sentence):
    done = run(hosts, suite, tmp_path, "it", *words)
    assert done.returncode == 2 and sentence in done.stderr and done.stderr.count("\n") == 1
    assert not (tmp_path / "it").exists()


def test_a_dry_run_shows_every_command_for_every_node(hosts, suite, tmp_path):
    done = run(hosts, suite, tmp_path, "it", "--dry-run")
    assert done.returncode == 0, done.stderr
    for node in ("node1", "node2"):
        lines = [line.strip() for line in done.stdout.splitlines() if line.strip().startswith(f"{node}: ")]
        assert lines[0].startswith(f"{node}: ssh ") and "StrictHostKeyChecking=yes" in lines[0]
        assert f"RANK={int(node[-1]) - 1} " in lines[1] and "train.py" in lines[1]
    assert not (tmp_path / "it").exists()
