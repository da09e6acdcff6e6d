"""The Dockerfile, which no test builds: by its linter, and by what its instructions name."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from shell_steps import ROOT

TEXT = (ROOT / "Dockerfile").read_text(encoding="utf-8")
INSTRUCTIONS = [
    line.split(None, 1)
    for line in re.sub(r"\\\n", " ", TEXT).splitlines()
    if line.strip() and not line.startswith("#")
]


def test_the_linter_has_nothing_to_say():
    folder = str(Path(sys.executable).parent)
    hadolint = shutil.which("hadolint", path=folder) or shutil.which("hadolint")
    if hadolint is None:
        pytest.skip("hadolint is not installed; pip install -r requirements/test.txt")
    done = subprocess.run([hadolint, ROOT / "Dockerfile"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "")


def test_what_is_copied_exists_and_is_not_ignored():
    copied = [source for word, rest in INSTRUCTIONS if word == "COPY" for source in rest.split()[:-1]]
    ignored = (ROOT / ".dockerignore").read_text().splitlines()
    not_ignored = [line[1:] for line in ignored if line.startswith("!")]
    for source in copied:
        assert (ROOT / source).exists()
        assert source.split("/")[0] in not_ignored
    assert {"examples", "src", "pyproject.toml", "LICENSE", "README.md"} <= set(copied)


def test_it_runs_the_command_as_a_user_without_rights():
    words = dict(INSTRUCTIONS)
    assert words["ENTRYPOINT"] == '["trainmark"]'
    assert words["USER"] == "1000"
    assert words["FROM"].startswith("python:3.")
