"""ResNet-50 whole, in the framework that is quickest to train it; the others train a small network here."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

from trainmark.cli.main import trainmark
from trainmark.runner import inventory

pytestmark = pytest.mark.usefixtures("installed_environments")


def test_the_whole_network_conforms():
    if inventory.interpreter_of("mxnet") is None:
        pytest.skip("mxnet is not installed; `trainmark frameworks install mxnet` installs it")
    done = CliRunner().invoke(trainmark, ["conform", "mxnet", "--json"])
    (verdict,) = json.loads(done.stdout)
    assert (verdict["differs"], verdict["conformant"], done.exit_code) == ([], True, 0)
