"""Runs whose figures are chosen, and the command as it is called."""

import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from trainmark.cli.main import trainmark

sys.path.insert(0, str(Path(__file__).parents[1] / "store"))


@pytest.fixture
def forecast(tmp_path):
    """What `trainmark forecast …` prints, with the runs of the test's folder."""

    def called(*words):
        arguments = ["forecast", *words, "--runs", str(tmp_path)]
        return CliRunner().invoke(trainmark, arguments, catch_exceptions=False)

    return called
