"""Bisecting a repository with the command, killed in the middle and resumed: one bisection, many tests."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import pytest
from planted import git, history

from trainmark.base.errors import UserError
from trainmark.runner.bisect.commits import commits_between

CULPRIT, BROKEN = 4, 3
PROGRAM = ["--pattern", r"step \d+", "--steps", "all", "--warmup", "2", "--", sys.executable, "train.py"]
PATIENCE = 300.0


def command(*words: str) -> list[str]:
    return [sys.executable, "-m", "trainmark", "bisect", *words]


def trials(folder: Path) -> int:
    return len(list(folder.glob("steps/*/trials/*/[0-9][0-9]")))


@pytest.fixture(scope="module")
def bisected(tmp_path_factory):
    """Seven commits, the fifth three times slower, the fourth broken; killed -9 in the second step."""
    place = tmp_path_factory.mktemp("bisected")
    repository, folder = place / "trainer", place / "bisection"
    commits = history(repository, 7, CULPRIT, 3.0, broken=(BROKEN,))
    before = git(repository, "for-each-ref"), sorted((repository / ".git").iterdir())
    ends = ["--good", commits[0], "--bad", "HEAD", "--repository", str(repository), "--error", "30%"]
    first = subprocess.Popen(
        command(*ends, "--folder", str(folder), *PROGRAM), stderr=subprocess.DEVNULL, cwd=place
    )
    deadline = time.monotonic() + PATIENCE
    while not list(folder.glob("steps/02-*/trials/*/02")) and time.monotonic() < deadline:
        assert first.poll() is None, "it ended before it could be killed"
        time.sleep(0.05)
    first.send_signal(signal.SIGKILL)
    first.wait()
    at_kill = trials(folder)
    state = json.loads((folder / "state.json").read_text())
    done = subprocess.run(
        command("--resume", str(folder), "--json"),
        cwd=place,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    after = git(repository, "for-each-ref"), sorted((repository / ".git").iterdir())
    return SimpleNamespace(
        commits=commits,
        folder=folder,
        untouched=before == after,
        at_kill=at_kill,
        state=state,
        done=done,
        report=json.loads(done.stdout) if done.stdout else None,
    )


def test_the_culprit_or_its_broken_neighbour_is_named(bisected):
    assert bisected.done.returncode == 0, bisected.done.stderr
    assert bisected.report["finding"] == "narrowed"
    assert bisected.report["culprits"] == [commit[:12] for commit in bisected.commits[BROKEN : CULPRIT + 1]]


def test_the_size_of_the_change_has_an_interval_around_the_truth(bisected):
    change = bisected.report["confirmation"]
    assert change["low"] < 1 / 2.2 and change["high"] > 1 / 3.8
    assert change["low"] < change["ratio"] < change["high"] < 1


def test_the_broken_commit_is_skipped_with_its_reason(bisected):
    (skipped,) = [step for step in bisected.report["steps"] if step["side"] == "skipped"]
    assert skipped["name"] == bisected.commits[BROKEN][:12]
    assert "this commit does not run" in skipped["reason"]


def test_after_kill_9_the_reference_is_not_measured_again(bisected):
    assert bisected.at_kill >= 2
    assert bisected.state["reference"] == bisected.report["reference"]
    assert len(bisected.state["steps"]) == 1


def test_after_kill_9_the_pairs_of_the_step_that_was_cut_short_are_used(bisected):
    step = bisected.report["steps"][1]
    place = next(bisected.folder.glob("steps/02-*"))
    rounds = sorted(path.name for path in next(place.glob("trials/*")).iterdir() if path.name.isdecimal())
    assert rounds[0] == "01"
    assert len(rounds) == len(step["measured"]["pairs"])


def test_all_trials_are_counted_in_the_cost(bisected):
    assert bisected.report["trials"] == trials(bisected.folder)


def test_nothing_is_written_into_the_repository(bisected):
    assert bisected.untouched


def test_the_reports_name_the_culprits(bisected):
    for name in ("report.html", "report.md"):
        assert bisected.commits[CULPRIT][:12] in (bisected.folder / name).read_text(encoding="utf-8")


def test_a_finished_bisection_resumed_measures_nothing(bisected):
    count = trials(bisected.folder)
    done = subprocess.run(
        command("--resume", str(bisected.folder)), capture_output=True, text=True, timeout=PATIENCE
    )
    assert done.returncode == 0
    assert "The change lies in one of" in done.stdout
    assert trials(bisected.folder) == count


def test_commits_are_listed_along_first_parents_and_from_the_folder_within(tmp_path):
    repository = tmp_path / "trainer"
    first, second = history(repository, 2, 5, 1.0)
    git(repository, "checkout", "--quiet", "-b", "side", first)
    (repository / "inner").mkdir()
    (repository / "inner" / "notes.txt").write_text("a side branch")
    git(repository, "add", ".")
    git(repository, "commit", "--quiet", "-m", "On the side")
    git(repository, "checkout", "--quiet", "-")
    git(repository, "merge", "--quiet", "--no-ff", "-m", "Merge", "side")
    between = commits_between(repository / "inner", first, "HEAD")
    assert between.commits == (first, second, git(repository, "rev-parse", "HEAD"))
    assert between.prefix == "inner/"


@pytest.mark.parametrize(
    ("good", "bad", "sentence"),
    [
        ("HEAD", "HEAD", "--good and --bad are the same commit"),
        ("HEAD", "HEAD~1", "--good is the earlier commit"),
        ("v9", "HEAD", "there is no commit 'v9'"),
        ("--all", "HEAD", "there is no commit '--all'"),
    ],
)
def test_ends_that_make_no_history_are_refused(tmp_path, good, bad, sentence):
    repository = tmp_path / "trainer"
    history(repository, 2, 5, 1.0)
    with pytest.raises(UserError, match=sentence):
        commits_between(repository, good, bad)


def test_a_folder_without_a_repository_is_refused(tmp_path):
    with pytest.raises(UserError, match="is no git repository"):
        commits_between(tmp_path, "HEAD~1", "HEAD")
