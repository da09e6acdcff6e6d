"""A folder like a reader's, with the examples in it, and the commands on the path."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from doc_pages import ROOT

# Guards against a hang, not a measure of speed.
SECONDS = 300


class Reader:
    """Somebody who types what a page says."""

    def __init__(self, folder):
        self.folder = folder
        bin_folder = str(Path(sys.executable).parent)
        path = os.pathsep.join([bin_folder, os.environ.get("PATH", os.defpath)])
        self.environment = {**os.environ, "PATH": path, "LC_ALL": "C.UTF-8"}
        self.environment.pop("TRAINMARK_RUNS", None)
        self.haste = ()

    def types(self, *command):
        command = [self.shortened(word) for word in command]
        return subprocess.run(
            command, cwd=self.folder, env=self.environment, timeout=SECONDS, text=True, encoding="utf-8",
            capture_output=True, check=False,
        )  # fmt: skip

    def shortened(self, word):
        """As a hasty reader types it."""
        for long, short in self.haste:
            word = word.replace(long, short)
        return word

    def trainmark(self, *arguments):
        return self.types(sys.executable, "-m", "trainmark", *arguments)


@pytest.fixture
def reader(tmp_path):
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    return Reader(tmp_path)


@pytest.fixture
def hasty_reader(reader):
    """The examples with so few trials and steps that a page is through in seconds."""
    for suite in reader.folder.glob("examples/*/suite.yaml"):
        text = suite.read_text(encoding="utf-8")
        for long, short in (
            ("repeats: 6", "repeats: 2"),
            ("{steps: 20}", "{steps: 2}"),
            ("{steps: 100}", "{steps: 20}"),
        ):
            assert long in text
            text = text.replace(long, short)
        suite.write_text(text, encoding="utf-8")
    reader.haste = (
        ("--images 2000", "--images 200"),
        ("data bench pictures", "data bench pictures --seconds 0.5 --rounds 1"),
        # tests/frameworks lets every framework conform by this command, which takes minutes.
        ("trainmark conform\n", "trainmark conform --help\n"),
    )
    return reader
