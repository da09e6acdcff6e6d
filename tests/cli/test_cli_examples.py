"""`trainmark examples`: listed, written, never over what is there."""

from __future__ import annotations

from trainmark.cli.suites import EXAMPLES, examples_folder


def test_every_example_is_listed_with_what_it_shows(trainmark):
    folders = {path.name for path in examples_folder().iterdir() if path.is_dir()}
    assert set(EXAMPLES) == folders
    assert [line.split()[0] for line in trainmark("examples").out.splitlines()] == list(EXAMPLES)


def test_an_example_is_written_with_the_line_that_runs_it(trainmark, tmp_path):
    result = trainmark("examples", "probe", "untouched", "reading", "--to", "mine")
    assert result.out.splitlines() == [
        "trainmark run mine/probe/suite.yaml",
        "trainmark run -- python mine/untouched/train.py",
        "mine/reading",
    ]
    assert (tmp_path / "mine" / "probe" / "train.py").is_file()
    assert trainmark("run", "mine/probe/suite.yaml", "--dry-run").code == 0


def test_what_is_there_is_not_written_over(trainmark, tmp_path):
    (tmp_path / "examples" / "reading").mkdir(parents=True)
    result = trainmark("examples", "all")
    assert (result.code, result.out) == (2, "")
    assert "examples/reading exists; choose another folder with --to." in result.err
    assert [path.name for path in (tmp_path / "examples").iterdir()] == ["reading"]


def test_an_unknown_example_is_refused_with_the_nearest(trainmark):
    assert "there is no example 'prob'; did you mean 'probe'?" in trainmark("examples", "prob").err
