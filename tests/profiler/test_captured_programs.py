"""What a profile leaves of two real trainings: one that only our hooks watch, and one of our own programs."""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import pytest

pytest.importorskip("torch")

HERE = Path(__file__).parent
SOURCE = HERE.parents[1] / "src"
MEASURED, PROFILED = 12, 3
# Five steps and two to settle before, between and after the passes; in a pass two to warm up and a boundary.
UNPROFILED, PASS, MEMORY = 2 + 5, 2 + 1 + PROFILED, 1
STEPS_OF_PROFILE = 3 * UNPROFILED + 2 * PASS + MEMORY
# The first pass is taken again, up to three times, where this machine was too busy to believe it.
POSSIBLE_STEPS = range(STEPS_OF_PROFILE, STEPS_OF_PROFILE + 3 * (PASS + UNPROFILED) + 1, PASS + UNPROFILED)
GPT2 = ["-m", "trainmark.workloads.gpt2.pytorch", "--size", "mini", "--length", "16", "--batch", "2"]

PROBED = """
import torch
from trainmark import probe
torch.set_num_threads(1)
model = torch.nn.Linear(8, 8)
optimizer = torch.optim.SGD(model.parameters(), 0.1)
run = probe.start(framework="pytorch")
while True:
    model(torch.ones(4, 8)).sum().backward()
    optimizer.step()
    run.step(4)
"""


class Program(NamedTuple):
    done: subprocess.CompletedProcess[str]
    profile: Path
    events: list[dict[str, Any]]

    @property
    def manifest(self) -> dict[str, Any]:
        return json.loads((self.profile / "rank0.json").read_text(encoding="utf-8"))

    @property
    def steps_taken(self) -> int:
        return self.manifest["facts"]["steps_taken"]

    @property
    def trace(self) -> list[dict[str, Any]]:
        with gzip.open(self.profile / self.manifest["passes"][-1]["trace"]) as file:
            return json.load(file)["traceEvents"]

    def of_kind(self, kind: str) -> list[dict[str, Any]]:
        return [event for event in self.events if event["event"] == kind]

    def annotations(self, prefix: str) -> list[dict[str, Any]]:
        rows = [row for row in self.trace if row.get("cat") == "user_annotation"]
        return sorted((row for row in rows if row["name"].startswith(prefix)), key=lambda row: row["ts"])


def start(folder: Path, command: list[str], profile: Path | None, hooks: bool) -> Program:
    events = folder / "events"
    events.mkdir(parents=True)
    path = [SOURCE / "trainmark/inside/hooks/injected", SOURCE] if hooks else [SOURCE]
    environment = dict(os.environ, PYTHONPATH=os.pathsep.join(map(str, path)), OMP_NUM_THREADS="1")
    environment.update(TRAINMARK_EVENTS=str(events), TRAINMARK_STOP=str(MEASURED))
    if profile is not None:
        environment.update(TRAINMARK_PROFILE=str(profile), TRAINMARK_PROFILE_STEPS=str(PROFILED))
    done = subprocess.run([sys.executable, *command], env=environment, capture_output=True, text=True)
    lines = [line for file in events.glob("*.jsonl") for line in file.read_text("utf-8").splitlines()]
    return Program(done, profile or folder, [json.loads(line) for line in lines])


def trainer(*arguments: str) -> list[str]:
    return [str(HERE / "mlp_trainer.py"), *arguments]


@pytest.fixture(scope="module")
def hooked(tmp_path_factory):
    """The small trainer with a profile and without."""
    folder = tmp_path_factory.mktemp("hooked")
    alone = start(folder / "alone", trainer(), None, hooks=True)
    return start(folder / "profiled", trainer(), folder / "profile", hooks=True), alone


@pytest.fixture(scope="module")
def gpt2(tmp_path_factory):
    """A miniature GPT-2 of ours with a profile and without."""
    folder = tmp_path_factory.mktemp("gpt2")
    command = [*GPT2, "--steps", str(MEASURED)]
    alone = start(folder / "alone", command, None, hooks=False)
    return start(folder / "profiled", command, folder / "profile", hooks=False), alone


@pytest.fixture(params=["hooked", "gpt2"])
def both(request):
    return request.getfixturevalue(request.param)


@pytest.fixture
def profiled(both) -> Program:
    return both[0]


def test_the_program_ends_as_it_does_without_a_profile_and_says_nothing(both):
    assert [program.done.returncode for program in both] == [0, 0]
    assert [program.done.stderr for program in both] == ["", ""]


def test_a_manifest_and_a_trace_are_all_that_is_left(profiled):
    assert sorted(path.name for path in profiled.profile.iterdir()) == [
        "rank0-detail.json.gz",
        "rank0-timing.json.gz",
        "rank0.json",
    ]


def test_a_program_with_a_record_of_its_own_records_no_step_of_the_profile(tmp_path):
    """The hooks take its profile and stop it, while it calls the probe after every step."""
    program = start(tmp_path, ["-c", PROBED], tmp_path / "profile", hooks=True)
    assert len(program.manifest["passes"]) == 2
    own = [step for step in program.of_kind("step") if step.get("samples") == 4]
    assert MEASURED - 1 <= len(own) <= MEASURED + 1


def test_the_record_has_the_same_measured_steps_and_losses(both):
    steps, alone = (
        [(step["step"], step.get("loss"), step.get("samples")) for step in program.of_kind("step")]
        for program in both
    )
    assert len(steps) == MEASURED
    assert steps == alone


def test_the_record_ends_before_the_profile_begins(profiled):
    (end,) = profiled.of_kind("run_end")
    assert all(end["wall"] < trace.stat().st_mtime for trace in profiled.profile.glob("*.json.gz"))


def test_the_manifest_says_what_was_profiled(profiled):
    import torch

    manifest = profiled.manifest
    assert (manifest["version"], manifest["rank"], manifest["world_size"]) == (1, 0, 1)
    assert (manifest["framework"], manifest["framework_version"]) == ("pytorch", torch.__version__)
    assert (manifest["device"], manifest["stream_clock"]) == ("cpu", "host")


def test_steps_are_timed_with_the_profiler_and_without(profiled):
    passes, unprofiled = profiled.manifest["passes"], profiled.manifest["unprofiled_step_seconds"]
    assert [(entry["name"], entry["steps"]) for entry in passes] == [
        ("timing", PROFILED),
        ("detail", PROFILED),
    ]
    assert [len(entry["step_seconds"]) for entry in passes] == [PROFILED] * 2
    assert [len(seconds) for seconds in unprofiled] == [5, 5, 5]
    assert min(map(min, [*(entry["step_seconds"] for entry in passes), *unprofiled])) > 0


def test_what_held_the_memory_is_known_by_size(hooked, gpt2):
    mlp, gpt = (programs[0].manifest["memory"] for programs in (hooked, gpt2))
    weights = (32 * 64 + 64 + 64 * 4 + 4) * 4
    assert (mlp["parameters"], mlp["optimizer"]) == (weights, 2 * weights + 4 * 4)
    assert gpt["optimizer"] >= 2 * gpt["parameters"] > 0
    assert gpt["blocks"][0]["pattern"] == "network.blocks.*"


def test_samples_a_step_are_counted(hooked, gpt2):
    assert hooked[0].manifest["samples_per_step"] == 16
    assert gpt2[0].manifest["samples_per_step"] == gpt2[0].of_kind("step")[0]["samples"]


def test_every_profiled_step_is_annotated_and_one_before_them_for_the_boundary(profiled):
    names = [row["name"] for row in profiled.annotations("trainmark_step#")]
    assert names == [f"trainmark_step#{number}" for number in range(PROFILED + 1)]


def test_annotated_steps_follow_each_other_without_overlap(profiled):
    steps = profiled.annotations("trainmark_step#")
    for before, after in pairwise(steps):
        assert before["ts"] + before["dur"] <= after["ts"] + 0.001


def test_a_profiled_step_by_the_clock_holds_its_annotation(profiled):
    annotated = [row["dur"] / 1e6 for row in profiled.annotations("trainmark_step#")[1:]]
    clocked = profiled.manifest["passes"][-1]["step_seconds"]
    assert all(0 < span <= step for span, step in zip(annotated, clocked, strict=True))


def test_each_step_fetches_its_batch_inside_an_annotation(profiled):
    spans = [(row["ts"], row["ts"] + row["dur"]) for row in profiled.annotations("trainmark_data")]
    for step in profiled.annotations("trainmark_step#")[1:]:
        assert any(step["ts"] <= begin and end <= step["ts"] + step["dur"] for begin, end in spans)


def test_the_trace_has_operators_with_shapes_and_python_frames_with_modules(profiled):
    trace = profiled.trace
    operators = [row for row in trace if row.get("cat") == "cpu_op"]
    assert any(row["name"] == "aten::addmm" and row["args"]["Input Dims"] for row in operators)
    assert any(row["name"].startswith("nn.Module: ") for row in trace if row.get("cat") == "python_function")


def test_losses_and_weights_of_the_measured_steps_are_those_without_a_profile(hooked):
    lines = [program.done.stdout.splitlines() for program in hooked]
    assert len(lines[1]) == MEASURED
    assert lines[0][:MEASURED] == lines[1]


def test_the_program_takes_exactly_the_steps_of_the_profile_more(hooked):
    lines = [len(program.done.stdout.splitlines()) for program in hooked]
    assert lines[0] - lines[1] == hooked[0].steps_taken
    assert hooked[0].steps_taken in POSSIBLE_STEPS


def test_a_program_killed_in_a_profiled_step_leaves_no_manifest(tmp_path):
    at = MEASURED + 1 + UNPROFILED + 4
    killed = start(tmp_path, trainer("kill", str(at)), tmp_path / "profile", hooks=True)
    assert killed.done.returncode < 0
    assert len(killed.of_kind("step")) == MEASURED
    assert list(killed.profile.glob("*.json")) == []


def test_a_program_that_ends_in_a_pass_leaves_its_error_and_no_trace(tmp_path):
    ended = start(
        tmp_path, trainer("end", str(MEASURED + 1 + UNPROFILED + 4)), tmp_path / "profile", hooks=True
    )
    assert (ended.done.returncode, ended.done.stderr) == (0, "")
    assert ended.manifest["passes"] == [
        {"name": "timing", "error": "the program ended after 4 of 6 steps of this pass"},
        {"name": "detail", "error": "the program ended before this pass"},
    ]
    assert [path.name for path in ended.profile.iterdir()] == ["rank0.json"]


def test_a_program_shorter_than_its_measured_steps_says_so(tmp_path):
    short = start(tmp_path, trainer("end", "5"), tmp_path / "profile", hooks=True)
    assert (short.done.returncode, len(short.of_kind("step"))) == (0, 5)
    assert short.manifest["passes"] == [
        {"name": name, "error": "the program ended before this pass"} for name in ("timing", "detail")
    ]


@pytest.mark.parametrize("hooks, command", [(True, trainer()), (False, [*GPT2, "--steps", "2"])])
def test_a_folder_that_cannot_be_made_costs_one_line_and_not_the_program(tmp_path, hooks, command):
    (tmp_path / "file").touch()
    refused = start(tmp_path, command, tmp_path / "file" / "profile", hooks)
    assert refused.done.returncode == 0
    (line,) = refused.done.stderr.splitlines()
    assert line.startswith("trainmark: no profile is written: NotADirectoryError")
    assert len(refused.of_kind("step")) == (MEASURED if hooks else 2)


def test_optimizers_in_turn_make_one_profiled_step(tmp_path):
    two = start(tmp_path, trainer("two"), tmp_path / "profile", hooks=True)
    assert len(two.annotations("trainmark_step#")) == PROFILED + 1
    assert len(two.annotations("Optimizer.step#")) >= 2 * PROFILED
    assert len(two.done.stdout.splitlines()) == MEASURED + two.steps_taken


def test_a_compiled_step_does_not_trace_the_hook(tmp_path):
    compiled = start(tmp_path, trainer("compiled"), tmp_path / "profile", hooks=True)
    assert compiled.done.returncode == 0
    assert len(compiled.annotations("trainmark_step#")) == PROFILED + 1
    assert len(compiled.of_kind("step")) == MEASURED


TWO_RANKS = """
import torch, torch.distributed as dist
dist.init_process_group("gloo")
model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(8, 8))
optimizer = torch.optim.SGD(model.parameters(), 0.1)
while True:
    model(torch.randn(4, 8)).sum().backward()
    optimizer.step()
"""


def test_ranks_take_the_same_steps_and_each_leaves_its_own_files(tmp_path):
    (tmp_path / "train.py").write_text(TWO_RANKS, encoding="utf-8")
    starter = ["-m", "torch.distributed.run", "--nproc-per-node", "2", str(tmp_path / "train.py")]
    ranks = start(tmp_path, starter, tmp_path / "profile", hooks=True)
    assert ranks.done.returncode == 0, ranks.done.stderr
    files = ["-detail.json.gz", "-timing.json.gz", ".json"]
    assert sorted(path.name for path in ranks.profile.iterdir()) == [
        f"rank{rank}{file}" for rank in range(2) for file in files
    ]
    other = json.loads((ranks.profile / "rank1.json").read_text(encoding="utf-8"))
    assert (other["rank"], other["world_size"], other["passes"][0]["steps"]) == (1, 2, PROFILED)
