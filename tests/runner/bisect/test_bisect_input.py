"""What `trainmark bisect` refuses: one sentence, exit code 2, and nothing is made."""

from __future__ import annotations

import pytest
from planted import history

from trainmark.base.errors import UserError
from trainmark.runner.bisect.state import BisectionFolder, BisectRequest
from trainmark.runner.watch_sides import create_watch
from trainmark.store.run import RunFolder

SILENT = "print('done')\n"
SUITE = """
name: two
workload: {name: t, command: 'python3 train.py', reader: pattern, pattern: step}
batch_per_device: 1
topology: 2n1g
"""
PROGRAM = ("--", "python3", "train.py")
COMMITS = ("--repository", "trainer")


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    folder = tmp_path_factory.mktemp("refused")
    history(folder / "trainer", 3, 9, 1.0)
    (folder / "train.py").write_text(SILENT)
    (folder / "two.yaml").write_text(SUITE)
    (folder / "bad.yaml").write_text("name: bad\nworkloat: resnet50\n")
    return folder


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ((), "say what to bisect"),
        (("--good", "HEAD", *PROGRAM), "--bad is missing"),
        (("--good", "HEAD", "--bad", "HEAD", *COMMITS, *PROGRAM), "are the same commit"),
        (("--good", "HEAD", "--bad", "HEAD~1", *COMMITS, *PROGRAM), "--good is the earlier commit"),
        (("--good", "HEAD~1", "--bad", "v9", *COMMITS, *PROGRAM), "there is no commit 'v9'"),
        (("--good", "HEAD~1", "--bad", "HEAD", *COMMITS, "--case", "1n1g", "quick"), "give one behind `--`"),
        (("--good", "toy==1", "--bad", "HEAD", *PROGRAM), "are a version and a commit"),
        (("--good", "toy==1", "--bad", "toy==2", "--python", "/no/python", *PROGRAM), "is no interpreter"),
        (("--bad-env", "A=1", "--good-env", "A=1", *PROGRAM), "the two sides do not differ"),
        (("--bad-env", "A=1", "bad.yaml"), "unknown key 'workloat'"),
        (("--bad-env", "A=1", "quick"), "choose it with --case"),
        (("--bad-env", "A=1", "--case", "1n9g", "quick"), "the suite has no case '1n9g' here"),
        (("--bad-set", "laiout=NHWC", "--case", "1n1g", "quick"), "--bad-set laiout=NHWC: unknown key"),
        (("--good-set", "layout=X", "--bad-set", "layout=NHWC", "--case", "1n1g", "quick"), "--good-set lay"),
        (("--bad-set", "topology=1n1g", "--case", "1n1g", "quick"), "may not add or remove one"),
        (
            ("--bad-set", "topology=1n512g", "--set", "topology=1n1g", "quick"),
            "the bad side cannot be measured",
        ),
        (("--bad-env", "A=1", "two.yaml"), "needs 2 nodes, and a bisection measures on this machine only"),
        (("--bad-env", "A=1", "--hosts", "a,b", "two.yaml"), "bisect measures on this machine only"),
        (("--bad-env", "A=1", "--matters", "soon", *PROGRAM), "--matters takes a share"),
        (("--bad-env", "A=1", "--folder", "trainer", *PROGRAM), "trainer exists"),
        (("--resume", "trainer"), "there is no bisection in trainer"),
        (("--resume", "trainer", "--matters", "5%"), "keeps what it was asked"),
        (("--resume", "trainer", *PROGRAM), "keeps what it was asked"),
    ],
)
def test_bad_input_is_refused_in_one_sentence_and_leaves_nothing(
    place, trainmark, monkeypatch, words, sentence
):
    monkeypatch.chdir(place)
    names = sorted(path.name for path in place.rglob("*") if ".git" not in path.parts)
    result = trainmark("bisect", *words)
    assert result.code == 2
    assert sentence in result.err.splitlines()[-1]
    assert sorted(path.name for path in place.rglob("*") if ".git" not in path.parts) == names


def test_a_program_that_prints_no_step_is_refused_with_the_place_of_its_logs(place, trainmark, monkeypatch):
    monkeypatch.chdir(place)
    result = trainmark("bisect", "--bad-env", "A=1", "--folder", "silent", "--", "python3", "train.py")
    last = result.err.splitlines()[-1]
    assert result.code == 2
    assert "the good side cannot be measured: 2 of 2 trials failed (invalid: no step was seen" in last
    assert last.endswith("its logs are in silent/steps/00-reference.")


def test_uncommitted_changes_are_named_as_not_measured(tmp_path, trainmark):
    history(tmp_path / "trainer", 2, 9, 1.0)
    changed = tmp_path / "trainer" / "train.py"
    changed.write_text(changed.read_text() + "# being worked on\n")
    words = ("--good", "HEAD~1", "--bad", "HEAD", *COMMITS, "--setup", "false", *PROGRAM)
    result = trainmark("bisect", *words)
    assert result.code == 2
    assert "not measured are the uncommitted changes of 1 file" in result.err
    assert changed.read_text().endswith("# being worked on\n")
    assert not (tmp_path / "bisections").exists()


@pytest.mark.parametrize(
    "make",
    [
        lambda path: BisectionFolder.create(path, None),
        lambda path: create_watch(path.parent, path.name, None, (), False),
        lambda path: RunFolder.create(path, None, ""),
    ],
)
def test_what_a_kill_left_before_anything_was_begun_is_not_to_be_resumed(tmp_path, make):
    (tmp_path / "left").mkdir()
    with pytest.raises(UserError, match=r"exists without .*; remove it if a killed start left it, or choose"):
        make(tmp_path / "left")


def test_a_refused_bisection_leaves_another_that_was_begun_beside_it(tmp_path):
    asked = BisectRequest("settings", "a", "b", "", 0, None, 0.02, 0.05, 9, "", "")
    refused = BisectionFolder.create(tmp_path / "bisections" / "one", asked)
    with pytest.raises(UserError, match="refused"), refused.removed_if_unused():
        BisectionFolder.create(tmp_path / "bisections" / "two", asked)
        raise UserError("refused")
    assert [each.name for each in (tmp_path / "bisections").iterdir()] == ["two"]
