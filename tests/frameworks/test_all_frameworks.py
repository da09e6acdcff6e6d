"""Every framework that is installed here, for real: it conforms, and it trains on two ranks."""

from __future__ import annotations

import json
import math
import os
import socket
import subprocess
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
from click.testing import CliRunner

import small_resnet
from trainmark.base.files import home
from trainmark.cli.main import trainmark
from trainmark.events import RunEnd, Step
from trainmark.events.stream import read
from trainmark.machine.frameworks.installed import State, standing
from trainmark.runner import conformance, inventory
from trainmark.workloads.resnet50.shared import recipe

pytestmark = pytest.mark.usefixtures("installed_environments")

SIX = ("jax", "mindspore", "mxnet", "paddle", "pytorch", "tensorflow")
SEVEN = (*SIX, "oneflow")
SUITE = """
framework: {name}
layout: any
device: cpu
topology: 1n2g
batch_per_device: 2
image_size: 64
warmup: {{steps: 1}}
measure: {{steps: 4}}
repeats: 1
limits: {{trial: 10m, silence: 8m}}
"""


@pytest.fixture(scope="module", autouse=True)
def late_ranks(tmp_path_factory, installed_environments) -> Iterator[list[subprocess.Popen[bytes]]]:
    """Start two ranks before the first test: they wait for each other while the others compute."""
    if not (python := inventory.interpreter_of("jax")):
        yield []
        return
    code = small_resnet.copy_code(small_resnet.THREE_BLOCKS, tmp_path_factory.mktemp("late") / "code")
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port = str(listener.getsockname()[1])
    shared = {"WORLD_SIZE": "2", "LOCAL_RANK": "0", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
    command = [python, str(Path(__file__).with_name("late_rank.py"))]
    environment = {**os.environ, **shared, "PYTHONPATH": str(code)}
    ranks = [subprocess.Popen(command, env={**environment, "RANK": rank}) for rank in "01"]
    yield ranks
    for rank in ranks:
        rank.kill()
        rank.wait()


def require(name: str) -> None:
    if inventory.interpreter_of(name) is None:
        reason = standing(name)[1] or f"`trainmark frameworks install {name}` installs it"
        pytest.skip(f"{name} is not installed: {reason}")


@pytest.mark.skipif("CI" not in os.environ, reason="only CI must have them all")
@pytest.mark.parametrize("name", SIX)
def test_ci_has_installed_it(name):
    assert standing(name)[0] is State.INSTALLED


@pytest.fixture(scope="module")
def small_network(tmp_path_factory, installed_environments):
    """`conform` trains a small network and keeps its verdicts in a home of the tests."""
    here = tmp_path_factory.mktemp("conforming")
    with pytest.MonkeyPatch.context() as patch:
        (here / "environments").symlink_to(home() / "environments")
        patch.setenv("TRAINMARK_HOME", str(here))
        patch.setattr(conformance, "keep_code", partial(small_resnet.copy_code, small_resnet.THREE_BLOCKS))
        small_resnet.build_here(small_resnet.THREE_BLOCKS, patch)
        yield


@pytest.mark.parametrize("name", SEVEN)
def test_it_trains_the_same_model_on_one_rank_and_on_two(name, small_network):
    require(name)
    done = CliRunner().invoke(trainmark, ["conform", name, "--json"])
    (verdict,) = json.loads(done.stdout)
    assert verdict["differs"] == []
    assert verdict["conformant"]
    assert done.exit_code == 0
    assert {check["ranks"] for check in verdict["checks"] if check["refused"] is None} == {1, 2}


@pytest.mark.parametrize("name", SEVEN)
def test_it_trains_a_few_steps_on_two_ranks(name, tmp_path, monkeypatch):
    require(name)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "suite.yaml").write_text(SUITE.format(name=name))
    done = CliRunner().invoke(trainmark, ["run", "suite.yaml", "--name", "two"])
    assert done.exit_code == 0, done.output
    (trial,) = (tmp_path / "runs/two/trials").glob("*/01")
    for rank in range(2):
        events = list(read(trial / "events" / f"rank{rank}.jsonl"))
        steps = [event for event in events if isinstance(event, Step)]
        assert [(step.step, step.samples) for step in steps] == [(number, 2) for number in range(5)]
        assert all(math.isfinite(step.loss) and step.loss > 1 for step in steps)
        rates = [recipe.STANDARD.learning_rate(number, 4) for number in range(5)]
        assert [step.lr for step in steps] == rates
        assert steps[0].memory > 50e6
        assert isinstance(events[-1], RunEnd)


def test_the_table_tells_which_are_installed_and_conform(small_network):
    """After the checks above: the verdicts are kept."""
    here = [name for name in SEVEN if inventory.interpreter_of(name)]
    if not here:
        pytest.skip("no framework is installed; `trainmark frameworks install pytorch` installs one")
    rows = json.loads(CliRunner().invoke(trainmark, ["frameworks", "--json"]).stdout)
    assert {row["framework"] for row in rows} == set(SEVEN)
    assert [row["framework"] for row in rows if row["installed"]] == sorted(here)
    assert all(row["conformant"] for row in rows if row["installed"])
    assert all("fp32" in row["precisions"] for row in rows if row["installed"])


def test_the_second_framework_of_the_example_family_conforms_too():
    require("jax")
    example = Path(__file__).parents[2] / "examples" / "friedman"
    done = CliRunner().invoke(trainmark, ["conform", "jax", "--workload", str(example), "--json"])
    (verdict,) = json.loads(done.stdout)
    assert verdict["conformant"] and {check["ranks"] for check in verdict["checks"]} == {1, 2}


def test_a_rank_of_jax_may_take_longer_to_compile_than_gloo_waits(late_ranks):
    require("jax")
    assert [rank.wait(timeout=300) for rank in late_ranks] == [0, 0]
