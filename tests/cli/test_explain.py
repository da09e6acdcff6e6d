"""`trainmark explain` as people call it: one profiled trial that many tests look at, and what is refused."""

from __future__ import annotations

import gzip
import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("torch", reason="the trials train with PyTorch, which is not installed here")

PLANTED = Path(__file__).parents[1] / "explain" / "planted"
CASE = "clean-1n1g"
SHORT = ("--steps", "4", "--warmup", "1", "--profile-steps", "2")
STEPS = """
import sys, torch
layer = torch.nn.Linear(4, 4)
optimizer = torch.optim.SGD(layer.parameters(), 0.1)
for step in range(int(sys.argv[1])):
    layer(torch.ones(2, 4)).sum().backward()
    optimizer.step()
"""


def files_below(folder: Path) -> dict[str, float]:
    """Return when each file was written, but the locks."""
    files = (path for path in folder.rglob("*") if path.is_file() and path.name != ".lock")
    return {str(path.relative_to(folder)): path.stat().st_mtime for path in files}


@pytest.fixture(scope="session")
def explained(tmp_path_factory) -> Path:
    """The folder `runs` with the run `it`, of a program that was explained; `said` has what was printed."""
    folder = tmp_path_factory.mktemp("explained")
    script = str(PLANTED / "clean.py")
    program = ("--", sys.executable, script, "--device", "cpu", "--batch", "2")
    command = [sys.executable, "-m", "trainmark", "explain", "--name", "it", *SHORT, *program]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    (folder / "printed").write_text(done.stdout, encoding="utf-8")
    return folder


@pytest.fixture
def runs(explained, tmp_path) -> Path:
    """A copy in ./runs, which the test may change."""
    return shutil.copytree(explained / "runs", tmp_path / "runs")


@pytest.fixture
def stored(runs) -> Path:
    return runs / "it" / "explain" / CASE


def with_shares(stored: Path) -> dict:
    """Let the shares stand, which a noisy machine refuses; returns the explanation."""
    explanation = read(stored)
    explanation["agreement"].update(refusal=None, measured=None)
    write(stored, explanation)
    return explanation


def read(folder: Path) -> dict:
    return json.loads((folder / "explanation.json").read_text(encoding="utf-8"))


def write(folder: Path, explanation: dict) -> None:
    (folder / "explanation.json").write_text(json.dumps(explanation), encoding="utf-8")


@pytest.fixture
def profile(runs) -> Path:
    (folder,) = runs.glob("it/trials/*/01/profile")
    return folder


def test_a_program_is_explained_on_the_terminal_and_in_files_beside_its_run(explained):
    printed = (explained / "printed").read_text(encoding="utf-8")
    folder = explained / "runs" / "it" / "explain" / CASE
    assert "Where a step goes" in printed and f"explain/{CASE}/explanation.html" in printed
    names = {"explanation.json", "explanation.html", "explanation.md", "trace.json.gz"}
    assert {path.name for path in folder.iterdir()} == names


def test_what_was_stored_adds_up_to_the_profiled_steps_exactly(explained):
    explanation = read(explained / "runs" / "it" / "explain" / CASE)
    parts = [row["alone"] for row in explanation["classes"]]
    parts += [row["nanoseconds"] for row in (*explanation["overlaps"], *explanation["idle"])]
    assert explanation["steps"] == 2 and sum(parts) == explanation["total"] > 0
    assert {"convolution", "normalisation"} <= {row["name"] for row in explanation["classes"]}


def test_refused_shares_come_with_what_to_do_and_what_the_measured_steps_tell(trainmark, runs, stored):
    explanation = json.loads(
        trainmark("explain", str(runs / "it" / "trials" / CASE / "01" / "profile"), "--json").out
    )
    refused = explanation["agreement"]["refusal"] is not None
    ways = ("--profile-steps 20", "profile on a quiet machine")
    assert any(way in note for note in explanation["notes"] for way in ways) is refused
    ends = ("steps are steady", "did not settle")
    assert any(end in doubt for doubt in read(stored)["doubts"] for end in ends)


def test_the_trace_beside_it_is_one_that_can_be_explained_again(trainmark, explained, tmp_path):
    trace = explained / "runs" / "it" / "explain" / CASE / "trace.json.gz"
    assert json.loads(gzip.decompress(trace.read_bytes()))["traceEvents"]
    result = trainmark("explain", str(trace), "--json")
    assert result.code == 0, result.err
    assert "convolution" in {row["name"] for row in json.loads(result.out)["classes"]}


def test_measured_steps_are_as_many_as_were_asked_for(explained):
    """The profiled ones come after them and are not among them."""
    (events,) = (explained / "runs" / "it" / "trials" / CASE / "01" / "events").glob("observed-*")
    steps = [line for line in events.read_text(encoding="utf-8").splitlines() if '"step"' in line]
    assert len(steps) == 5


@pytest.mark.parametrize(
    "words", [("it",), ("latest",), ("it", CASE), (f"it/{CASE}",), (f"runs/it/{CASE}",), ()], ids=" ".join
)
def test_a_later_call_shows_what_is_stored_and_runs_nothing(trainmark, runs, words):
    before = files_below(runs)
    result = trainmark("explain", *words, "--json")
    assert result.code == 0, result.err
    assert json.loads(result.out)["total"] == read(runs / "it" / "explain" / CASE)["total"]
    assert files_below(runs) == before


def test_an_explanation_is_made_again_from_its_profile_where_changes_are_to_be_verified(
    trainmark, runs, stored
):
    before = read(stored)["total"]
    (stored / "explanation.json").unlink()
    result = trainmark("explain", "it", "--verify")
    assert result.code == 0, result.err
    assert read(stored)["total"] == before
    assert [path.name for path in runs.iterdir()] == ["it"]  # nothing of a user's program can be changed


def test_a_change_that_is_named_and_not_predicted_is_refused_with_those_that_are(trainmark, runs, stored):
    result = trainmark("explain", "it", "--verify", "--what-if", "channels last")
    assert result.code == 2
    assert "'channels last' is not predicted for this case, these are: " in result.err
    assert [path.name for path in runs.iterdir()] == ["it"]


def test_again_takes_a_new_trial_in_place_of_the_stored_one(trainmark, runs, stored):
    (stored / "trace.json.gz").unlink()
    before = read(stored)["total"]
    result = trainmark("explain", "it", "--again", "--profile-steps", "1")
    assert result.code == 0, result.err
    explanation = read(stored)
    assert explanation["steps"] == 1 and explanation["total"] != before
    assert (stored / "trace.json.gz").is_file()
    assert [path.name for path in stored.parent.iterdir()] == [CASE]


def test_code_that_cannot_profile_itself_is_profiled_by_this_version(trainmark, runs, stored):
    shutil.rmtree(runs / "it" / "code" / "trainmark" / "inside" / "profiler")
    shutil.rmtree(runs / "it" / "trials" / CASE / "01" / "profile")
    shutil.rmtree(stored)
    result = trainmark("explain", "it", "--profile-steps", "1")
    assert result.code == 0, result.err
    assert "cannot profile itself" in result.err
    assert (stored / "explanation.json").is_file()
    assert not (runs / "it" / "code" / "trainmark" / "inside" / "profiler").exists()


@pytest.mark.parametrize(
    "kind, begins", [("json", "{"), ("md", "# "), ("html", "<!doctype html>"), ("text", "caution: ")]
)
def test_each_format_is_printed_alone(trainmark, runs, kind, begins):
    before = files_below(runs)
    result = trainmark("explain", "it", "--format", kind)
    assert (result.code, result.err) == (0, "")
    assert result.out.lower().startswith(begins)
    assert files_below(runs) == before


@pytest.mark.parametrize("kind", ["json", "md", "html", "text"])
def test_a_format_is_written_to_the_file_that_is_named(trainmark, runs, tmp_path, kind):
    result = trainmark("explain", "it", "--format", kind, "--out", "written")
    assert result.code == 0, result.err
    assert result.out.split() == ["written"]
    assert (tmp_path / "written").read_text(encoding="utf-8") == trainmark(
        "explain", "it", "--format", kind
    ).out


def test_without_a_format_a_folder_takes_the_files(trainmark, runs, tmp_path):
    result = trainmark("explain", "it", "--out", "there")
    assert result.code == 0, result.err
    assert {path.name for path in (tmp_path / "there").iterdir()} == {"explanation.html", "explanation.md"}


def test_chinese_has_its_own_words_and_its_own_files(trainmark, runs, stored):
    result = trainmark("explain", "it", "--lang", "zh")
    assert result.code == 0, result.err
    assert "Where a step goes" not in result.out and any("一" <= letter <= "鿿" for letter in result.out)
    assert (stored / "explanation.zh.html").is_file() and (stored / "explanation.zh.md").is_file()


def test_memory_alone_is_shown_on_request(trainmark, runs):
    result = trainmark("explain", "it", "--memory")
    assert result.code == 0, result.err
    assert "At the peak" in result.out and "Where a step goes" not in result.out


def test_a_profile_folder_and_its_trace_are_explained_without_a_run(trainmark, runs, profile, tmp_path):
    moved = shutil.copytree(profile, tmp_path / "profile")
    shutil.rmtree(runs)
    for target in ("profile", "profile/rank0-detail.json.gz"):
        result = trainmark("explain", target, "--json")
        assert result.code == 0, result.err
        assert json.loads(result.out)["steps"] == 2
    assert {path.name for path in tmp_path.iterdir()} == {moved.name}


def test_the_difference_of_two_is_what_one_takes_longer(trainmark, runs, stored):
    slower = with_shares(stored)
    shutil.copytree(runs / "it", runs / "other")
    added = 0.001
    slower["classes"][0]["alone"] += round(slower["steps"] * added * 1e9)
    slower["classes"][0]["busy"] += round(slower["steps"] * added * 1e9)
    slower["total"] += round(slower["steps"] * added * 1e9)
    slower["agreement"]["profiled"] += added
    write(runs / "other" / "explain" / CASE, slower)
    result = trainmark("explain", "it", "other", "--json")
    assert result.code == 0, result.err
    changes = {row["name"]: row["change"] for row in json.loads(result.out)["contributions"]}
    assert sum(changes.values()) == pytest.approx(added)
    assert changes[slower["classes"][0]["name"]] == pytest.approx(added)


def test_two_that_are_compared_are_written_where_asked(trainmark, runs, stored, tmp_path):
    with_shares(stored)
    shutil.copytree(runs / "it", runs / "other")
    result = trainmark("explain", f"it/{CASE}", "other", "--out", "there")
    assert result.code == 0, result.err
    assert {path.name for path in (tmp_path / "there").iterdir()} == {"difference.html", "difference.md"}


@pytest.mark.parametrize(
    "words, sentence",
    [
        (("absent",), "there is no run 'absent' in runs"),
        (("it/absent",), f"it has no case 'absent'; it has {CASE}"),
        (("it", "absent"), f"'absent' is no run, no trace and no case of it, which has {CASE}"),
        (("it", CASE, "it"), "one target or two to compare"),
        (("it", "--steps", "5"), "--steps is for a program; write one behind `--`"),
        (("it", "--samples-per-step", "5"), "--samples-per-step is for a program; write one behind `--`"),
        (("it", "--", "sh"), "name a run or a program behind `--`, not both"),
        (("--",), "nothing stands behind `--`"),
        (("--", "no-such-program"), "there is no program 'no-such-program'"),
        (("it", "--profile-steps", "0"), "'--profile-steps'"),
        (("it", "--format", "pdf"), "'--format'"),
        (("cut.json.gz",), "cut.json.gz"),
        (("cut.json",), "cut.json"),
        (("empty.json",), "empty.json"),
        (("text.json",), "text.json"),
        (("absent.json",), "absent.json"),
        (("folder",), "there is no run 'folder'"),
        (("runs/it/trials",), "runs/it has no case 'trials'"),
        (("whole.json.gz", "--verify"), "only a case of a run can be changed, and a trace is none"),
        (("it", "--what-if", "compile"), "--what-if says what --verify is to make: give both"),
        (("it", "--verify", "--what-if", "floors"), "'floors' cannot be made by a suite: name one of graph"),
        (("it", "cut.json.gz"), "cut.json.gz"),
        (("whole.json.gz", "--memory"), "nothing is known of the memory"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_what_cannot_be_explained_is_refused_in_one_sentence(trainmark, runs, profile, words, sentence):
    here = runs.parent
    whole = (profile / "rank0-detail.json.gz").read_bytes()
    plain = gzip.decompress(whole)
    contents = {"whole.json.gz": whole, "cut.json.gz": whole[:-2000], "cut.json": plain[:-2000]}
    for name, content in (contents | {"empty.json": b"", "text.json": b"no trace\n"}).items():
        (here / name).write_bytes(content)
    (here / "folder").mkdir()
    before = files_below(here)
    result = trainmark("explain", *words)
    assert (result.code, result.out) == (2, "")
    assert sentence in result.err and result.err.count("\n") <= 2, result.err
    assert "Traceback" not in result.err
    assert files_below(here) == before


@pytest.mark.parametrize(
    "program, sentence",
    [
        ("raise SystemExit(7)", "crashed: rank 0"),
        (f"import sys; sys.argv = ['x', '8']\n{STEPS}", "a profile takes 32 steps after the measured"),
        ("print('no step')", "the trial that was to be explained failed"),
    ],
    ids=["it crashes", "it ends before its profiled steps", "it never steps"],
)
def test_a_program_that_leaves_no_profile_is_told_in_one_sentence(trainmark, tmp_path, program, sentence):
    (tmp_path / "train.py").write_text(program, encoding="utf-8")
    result = trainmark("explain", "--name", "it", *SHORT, "--", sys.executable, "train.py")
    assert (result.code, result.out) == (2, ""), result.err
    last = result.err.splitlines()[-1]
    assert last.startswith("trainmark: ") and sentence in last, result.err
    assert not (tmp_path / "runs" / "it" / "explain").exists()


def test_a_trial_that_fails_leaves_the_stored_explanation_alone(trainmark, tmp_path, runs, stored):
    (stored.parents[1] / "suite.yaml").write_text(
        (stored.parents[1] / "suite.yaml").read_text(encoding="utf-8").replace("clean.py", "absent.py"),
        encoding="utf-8",
    )
    before = files_below(stored)
    result = trainmark("explain", "it", "--again")
    assert result.code == 2
    assert files_below(stored) == before and list(stored.parent.iterdir()) == [stored]
