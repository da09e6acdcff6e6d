from __future__ import annotations

import json
import sys

import pytest
from click.testing import CliRunner

from trainmark.cli.main import trainmark


def test_the_json_is_one_object_with_every_section():
    done = CliRunner().invoke(trainmark, ["env", "--json"])
    assert done.exit_code == 0
    assert {"host", "devices", "libraries", "fabric", "software"} <= set(json.loads(done.output))


def test_the_text_names_what_is_absent_and_keeps_to_80_columns(monkeypatch: pytest.MonkeyPatch, tmp_path):
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("PATH", str(tmp_path))
    done = CliRunner().invoke(trainmark, ["env"])
    lines = done.output.splitlines()
    assert done.exit_code == 0
    absent = done.output.partition("Libraries")[2].partition("Fabric")[0]
    assert "nccl" in absent.partition("not found:")[2]
    assert max(map(len, lines)) <= 80


def test_the_packages_of_another_interpreter_are_shown():
    done = CliRunner().invoke(trainmark, ["env", "--json", "--python", sys.executable])
    assert json.loads(done.output)["software"]["packages"]["numpy"]


def test_a_program_that_is_no_interpreter_is_refused_in_one_sentence():
    done = CliRunner().invoke(trainmark, ["env", "--python", "/bin/false"])
    assert done.exit_code == 1
    assert done.output.startswith("Error: /bin/false did not answer as Python does")
