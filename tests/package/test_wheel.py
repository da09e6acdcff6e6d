"""The wheel works in an empty environment: the licence and all that is not code are in it, no test is."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

import pytest

import trainmark

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "trainmark"


def run(*command: str | Path, cwd: Path) -> str:
    environment = {
        name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "TRAINMARK_RUNS")
    }
    done = subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    run(sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", folder, ROOT, cwd=folder)
    (built,) = folder.glob("trainmark-*.whl")
    return built


@pytest.fixture(scope="module")
def names(wheel) -> set[str]:
    return set(zipfile.ZipFile(wheel).namelist())


@pytest.fixture(scope="module")
def venv(wheel, tmp_path_factory) -> Path:
    """A new environment with the wheel; the dependencies are the tests' own, so that nothing is fetched."""
    folder = tmp_path_factory.mktemp("venv")
    run(sys.executable, "-m", "venv", "--without-pip", folder, cwd=folder)
    pip = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check"]
    run(*pip, "--python", folder / "bin/python", "install", "--no-deps", "--no-index", wheel, cwd=folder)
    (site_packages,) = folder.glob("lib/python3*/site-packages")
    (site_packages / "dependencies.pth").write_text(sysconfig.get_path("purelib"))
    return folder


def test_every_file_of_the_package_is_in_the_wheel(names):
    written = {
        path.relative_to(SOURCE.parent).as_posix()
        for path in SOURCE.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert written
    assert written <= names


def test_the_wheel_has_the_package_and_its_licence_and_nothing_else(names):
    inside = {name for name in names if name.startswith("trainmark/")}
    about = {name.partition(".dist-info/")[2] for name in names - inside}
    assert about == {"METADATA", "WHEEL", "RECORD", "entry_points.txt", "licenses/LICENSE"}
    assert not [name for name in inside if "/tests/" in name or "/test_" in name]


@pytest.mark.parametrize(
    "pattern",
    [
        "suite/builtin/quick.yaml",
        "cli/chinese.yaml",
        "view/templates/*.j2",
        "machine/frameworks/locks/pytorch.txt",
        "machine/peaks.yaml",
        "inside/profiler/cupti/injection.c",
        "inside/profiler/cupti/fallback/crt/host_defines.h",
        "py.typed",
    ],
)
def test_what_is_not_code_is_installed_too(venv, pattern):
    assert list(venv.glob(f"lib/python3*/site-packages/trainmark/{pattern}"))


def test_the_wheel_names_its_command_its_licence_and_its_extras(wheel, names):
    archive = zipfile.ZipFile(wheel)
    (entry,) = [name for name in names if name.endswith("entry_points.txt")]
    assert "trainmark = trainmark.__main__:main" in archive.read(entry).decode()
    (metadata,) = [name for name in names if name.endswith("METADATA")]
    lines = archive.read(metadata).decode().splitlines()
    assert {line for line in lines if line.startswith(("License-", "Provides-Extra"))} == {
        "License-Expression: Apache-2.0",
        "License-File: LICENSE",
        *(f"Provides-Extra: {extra}" for extra in ("arrow", "frame", "index", "pytorch", "server")),
    }


def test_what_was_installed_is_what_answers(venv, tmp_path):
    program = "import trainmark; print(trainmark.__file__)"
    assert Path(run(venv / "bin/python", "-c", program, cwd=tmp_path)).is_relative_to(venv)


def test_the_installed_command_shows_its_version_its_help_and_its_suites(venv, tmp_path):
    script = venv / "bin/trainmark"
    assert trainmark.__version__ in run(script, "--version", cwd=tmp_path)
    assert "trainmark run quick" in run(script, "--help", cwd=tmp_path)
    suites = {line.split()[0] for line in run(script, "suites", cwd=tmp_path).splitlines()}
    assert suites >= {"quick", "resnet50-dlperf", "resnet50-scaling"}


def test_the_examples_come_with_the_wheel_and_are_written_by_a_command(venv, tmp_path):
    run(venv / "bin/trainmark", "examples", "all", cwd=tmp_path)
    examples = ROOT / "examples"
    files = {path for path in examples.rglob("*") if path.is_file() and "__pycache__" not in path.parts}
    for path in files:
        assert (tmp_path / "examples" / path.relative_to(examples)).read_bytes() == path.read_bytes()


def test_a_program_is_measured_and_reported_by_the_installed_package(venv, tmp_path):
    program = (
        "from trainmark import probe\n"
        "run = probe.start()\n"
        "for _ in range(60):\n"
        "    sum(range(20_000))\n"
        "    run.step(samples=1)\n"
        "run.end()\n"
    )
    (tmp_path / "train.py").write_text(program)
    (tmp_path / "mine.yaml").write_text(
        "workload: {command: '{python} train.py'}\nrepeats: 1\nwarmup: {steps: 5}\nmeasure: {steps: 50}\n"
    )
    run(venv / "bin/trainmark", "run", "mine.yaml", "--name", "a", cwd=tmp_path)
    run(venv / "bin/trainmark", "report", "a", cwd=tmp_path)
    for name in ("report.html", "report.md", "report.json", "report.csv"):
        assert (tmp_path / "runs" / "a" / name).stat().st_size > 0
