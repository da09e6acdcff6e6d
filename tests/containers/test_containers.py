"""Containers do not run everywhere; their runtimes' command lines are real, the runtime is a stand-in."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from trainmark.cli.main import trainmark
from trainmark.runner.command import RankInterpreter
from trainmark.suite.load import parse
from trainmark.suite.model import ContainerImage, SuiteError

STAND_IN = Path(__file__).with_name("stand_in_runtime.py")
CODE, TRIAL = Path("/runs/a/code"), Path("/runs/a/trials/b/.01.part")
SUITE = """
framework: pytorch
python: {python}
container: {{image: {image}, runtime: {runtime}, options: [--pull=never]}}
batch_per_device: 2
image_size: 32
warmup: {{steps: 1}}
measure: {{steps: 3}}
repeats: 1
"""


@pytest.fixture
def runtime(tmp_path, monkeypatch):
    """A folder with `docker` and `podman`, first on the path."""
    for name in ("docker", "podman"):
        path = tmp_path / "bin" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(f'#!/bin/sh\nexec "{sys.executable}" -S "{STAND_IN}" "$@"\n')
        path.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def suite(folder: Path, image: str = "torch:2.13", runtime: str = "docker") -> str:
    path = folder / "suite.yaml"
    path.write_text(SUITE.format(python=sys.executable, image=image, runtime=runtime))
    return str(path)


def command(runtime: str, gpus: bool = False) -> str:
    container = ContainerImage("torch:2.13", runtime, options=("--read-only",))
    words = RankInterpreter("python3", container, gpus).command(("-m", "x"), CODE, TRIAL, ["NCCL_DEBUG"])
    return " ".join(words)


@pytest.mark.parametrize("runtime", ["docker", "podman"])
def test_a_container_sees_the_code_and_the_trial_and_gets_its_rank_by_name(runtime):
    command_line = command(runtime)
    assert command_line.startswith(f"{runtime} run --rm --init --interactive --network host --ipc host")
    assert f"--volume {CODE}:{CODE} --volume {TRIAL}:{TRIAL} --workdir {TRIAL}" in command_line
    assert "--env RANK " in command_line
    assert "--env NCCL_DEBUG" in command_line
    assert command_line.endswith("--read-only torch:2.13 python3 -m x")


def test_apptainer_shares_the_environment_and_binds_the_folders():
    assert command("apptainer") == (
        f"apptainer exec --bind {CODE} --bind {TRIAL} --pwd {TRIAL} --read-only torch:2.13 python3 -m x"
    )


@pytest.mark.parametrize(
    ("runtime", "flag"),
    [("docker", "--gpus all"), ("podman", "--device nvidia.com/gpu=all"), ("apptainer", "--nv")],
)
def test_gpus_are_shown_to_a_container_that_trains_on_them(runtime, flag):
    assert flag in command(runtime, gpus=True)
    assert flag not in command(runtime)


@pytest.mark.parametrize("name", ["docker", "podman"])
def test_a_suite_trains_inside_the_image_it_names(name, runtime):
    pytest.importorskip("torch", reason="PyTorch is not installed; trainmark frameworks install pytorch")
    done = CliRunner().invoke(trainmark, ["run", suite(runtime, runtime=name), "--name", "contained"])
    assert done.exit_code == 0, done.output
    (record,) = (runtime / "runs/contained/trials").glob("*/01/trial.json")
    assert "custom" in record.parent.parent.name


def test_a_dry_run_shows_the_exact_command(runtime):
    pytest.importorskip("torch", reason="PyTorch is not installed; trainmark frameworks install pytorch")
    done = CliRunner().invoke(trainmark, ["run", suite(runtime), "--dry-run"])
    assert "docker run --rm" in done.output
    assert f"--pull=never torch:2.13 {sys.executable} -u -m trainmark.workloads" in done.output


def test_an_image_that_is_not_there_is_a_skip_with_the_words_of_the_runtime(runtime):
    done = CliRunner().invoke(trainmark, ["run", suite(runtime, image="absent"), "--dry-run"])
    assert "docker image absent: Unable to find image 'absent:latest' locally" in " ".join(
        done.output.split()
    )


def test_a_runtime_that_is_not_installed_is_a_skip_that_says_so(tmp_path, monkeypatch):
    if shutil.which("apptainer"):
        pytest.skip("apptainer is installed here")
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(trainmark, ["run", suite(tmp_path, runtime="apptainer"), "--dry-run"])
    assert "apptainer image torch:2.13 does not start" in " ".join(done.output.split())


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("container: {runtime: docker}", "needs an 'image'"),
        ("container: {image: a, runtime: rkt}", "docker, podman or apptainer"),
        ("container: {image: a, options: -v}", "list of words"),
        ("workload: {command: train}\ncontainer: a", "leave this out"),
    ],
)
def test_a_container_that_cannot_be_understood_is_refused(text, sentence):
    with pytest.raises(SuiteError, match=sentence):
        parse(text, "suite.yaml")
