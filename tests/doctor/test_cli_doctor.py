"""`trainmark doctor` as people call it."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from trainmark.cli.main import main


@pytest.fixture
def doctor(monkeypatch, capsys):
    def call(*words):
        monkeypatch.setattr(sys, "argv", ["trainmark", "doctor", "--python", sys.executable, *words])
        with pytest.raises(SystemExit) as left:
            main()
        captured = capsys.readouterr()
        return left.value.code, captured.out, captured.err

    return call


def test_this_machine_is_examined_where_no_hosts_are_named(doctor):
    _, out, err = doctor()
    assert err == ""
    assert out.startswith("check ")
    assert "time offset" in out


def test_json_is_one_object_with_facts_and_findings(doctor):
    _, out, _ = doctor("--json")
    document = json.loads(out)
    assert set(document) == {"healthy", "findings", "nodes", "calls"}
    assert document["nodes"][0]["facts"]["host"]["cpus"] >= 1


def test_a_red_line_is_exit_code_1(doctor, tmp_path):
    code, out, _ = doctor("--dataset", str(tmp_path / "nowhere"))
    assert code == 1
    assert "there is nothing at" in out
    assert "fix: " in out


def test_a_dataset_is_summed_up(doctor, tmp_path):
    (tmp_path / "a").write_bytes(b"1")
    _, out, _ = doctor("--dataset", str(tmp_path), "--deep")
    assert "✓ 1 file, 1 B" in out


def test_an_interface_that_is_not_there_is_red(doctor):
    code, out, _ = doctor("--interface", "nope0")
    assert code == 1
    assert "there is no interface nope0" in out


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("--ports", "many"), "no list of ports"),
        (("--ports", "29510-29500"), "does not lie within"),
        (("--ports", "0"), "does not lie within"),
        (("--ports", "1-99999999999999"), "does not lie within"),
        (("--deep",), "--dataset PATH"),
        (("--timeout", "0"), "--timeout"),
    ],
)
def test_bad_input_is_one_sentence_and_exit_code_2(doctor, words, sentence):
    code, out, err = doctor(*words)
    assert (code, out) == (2, "")
    assert sentence in err
    assert err.count("\n") == 1


def test_an_unknown_framework_is_bad_input(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["trainmark", "doctor", "--framework", "pytorhc"])
    with pytest.raises(SystemExit) as left:
        main()
    assert left.value.code == 2
    assert "did you mean 'pytorch'?" in capsys.readouterr().err


def examined_by_default(trainmark, monkeypatch, modules):
    """What `trainmark doctor` says where these modules lie beside it and no environment is installed."""
    monkeypatch.setattr("trainmark.runner.inventory._in_our_own", lambda name: name in modules)
    return trainmark("doctor", "--json")


def test_a_machine_without_a_framework_is_red(trainmark, monkeypatch, tmp_path):
    bare = tmp_path / "bare" / "bin" / "python"
    bare.parent.mkdir(parents=True)
    (tmp_path / "bare" / "pyvenv.cfg").write_text(f"home = {Path(sys._base_executable).parent}\n")
    bare.symlink_to(sys._base_executable)
    monkeypatch.setattr(sys, "executable", str(bare))
    result = examined_by_default(trainmark, monkeypatch, ())
    findings = [each for each in json.loads(result.out)["findings"] if each["check"] == "framework versions"]
    assert result.code == 1
    assert [each["mark"] for each in findings] == ["bad"]
    assert "trainmark frameworks install pytorch" in findings[0]["fix"]


def test_a_framework_beside_trainmark_is_looked_at(trainmark, monkeypatch):
    result = examined_by_default(trainmark, monkeypatch, ("pytorch",))
    (node,) = json.loads(result.out)["nodes"]
    assert list(node["facts"]["interpreters"]) == [sys.executable]


def test_a_framework_beside_trainmark_needs_no_environment_of_its_own(trainmark, monkeypatch):
    monkeypatch.setattr("trainmark.runner.inventory._in_our_own", lambda name: name == "pytorch")
    assert trainmark("doctor", "--framework", "pytorch").err == ""
    assert "jax is not installed" in trainmark("doctor", "--framework", "jax").err
