"""The wheel works outside the checkout: all that is not code is in it too."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "trainmark"


def python(*words: str, cwd: Path, path: Path | None = None) -> str:
    environment = {name: value for name, value in os.environ.items() if name != "TRAINMARK_RUNS"}
    if path is not None:
        environment["PYTHONPATH"] = str(path)
    done = subprocess.run([sys.executable, *words], cwd=cwd, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    python("-m", "build", "--wheel", "--no-isolation", "--outdir", str(folder), str(ROOT), cwd=folder)
    (built,) = folder.glob("trainmark-*.whl")
    return built


@pytest.fixture(scope="module")
def installed(wheel, tmp_path_factory) -> Path:
    target = tmp_path_factory.mktemp("installed")
    install = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps", "--no-index"]
    python(*install, "--target", str(target), str(wheel), cwd=target)
    return target


def test_every_file_of_the_package_is_in_the_wheel(wheel):
    written = {
        path.relative_to(SOURCE.parent).as_posix()
        for path in SOURCE.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert written
    assert written <= set(zipfile.ZipFile(wheel).namelist())


@pytest.mark.parametrize(
    "pattern",
    [
        "suite/builtin/quick.yaml",
        "report/templates/*.j2",
        "environments/locks/pytorch.txt",
        "system/peaks.yaml",
        "py.typed",
    ],
)
def test_what_is_not_code_is_installed_too(installed, pattern):
    assert list((installed / "trainmark").glob(pattern))


def test_the_wheel_names_its_command_and_its_extras(wheel):
    archive = zipfile.ZipFile(wheel)
    (entry,) = [name for name in archive.namelist() if name.endswith("entry_points.txt")]
    assert "trainmark = trainmark.cli.main:main" in archive.read(entry).decode()
    (metadata,) = [name for name in archive.namelist() if name.endswith("METADATA")]
    assert "Provides-Extra: pytorch" in archive.read(metadata).decode()


def test_what_was_installed_is_what_answers(installed, tmp_path):
    found = python("-c", "import trainmark; print(trainmark.__file__)", cwd=tmp_path, path=installed)
    assert Path(found.strip()) == installed / "trainmark" / "__init__.py"


def test_the_installed_command_shows_its_help_and_its_suites(installed, tmp_path):
    script = installed / "bin" / "trainmark"
    assert "trainmark run quick" in python(str(script), "--help", cwd=tmp_path, path=installed)
    suites = python("-m", "trainmark", "suites", cwd=tmp_path, path=installed)
    assert {line.split()[0] for line in suites.splitlines()} >= {
        "quick",
        "resnet50-dlperf",
        "resnet50-scaling",
    }


def test_a_program_is_measured_and_reported_by_the_installed_package(installed, tmp_path):
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
    python("-m", "trainmark", "run", "mine.yaml", "--name", "a", cwd=tmp_path, path=installed)
    python("-m", "trainmark", "report", "a", cwd=tmp_path, path=installed)
    for name in ("report.html", "report.md", "report.json", "report.csv"):
        assert (tmp_path / "runs" / "a" / name).stat().st_size > 0
