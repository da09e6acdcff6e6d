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


def reader_in(folder):
    shutil.copytree(ROOT / "examples", folder / "examples")
    return Reader(folder)


def hasty_reader_in(folder):
    reader = reader_in(folder)
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


@pytest.fixture
def reader(tmp_path):
    return reader_in(tmp_path)


@pytest.fixture
def hasty_reader(tmp_path):
    """The examples with so few trials and steps that a page is through in seconds."""
    return hasty_reader_in(tmp_path)


@pytest.fixture(scope="module")
def reader_of_a_run(tmp_path_factory):
    """Somebody who has run the probe's example as `one`; tests look at it and change nothing."""
    reader = hasty_reader_in(tmp_path_factory.mktemp("reader"))
    reader.trainmark("run", "examples/probe/suite.yaml", "--name", "one")
    return reader
