"""Steps of a real JAX program on the CPU, by the interpreter that `trainmark frameworks` installed."""

from __future__ import annotations

import gzip
import json
import os
import subprocess
from pathlib import Path

import pytest

from trainmark.environments import python_of

pytestmark = pytest.mark.usefixtures("installed_environments")
HERE = Path(__file__).parent
SOURCE = HERE.parents[1] / "src"


@pytest.fixture(scope="module")
def profiled(tmp_path_factory, installed_environments):
    """What the program printed, its trace, and the folder for temporary files as it left it."""
    python = python_of("jax")
    if python is None:
        pytest.skip("JAX is not installed: trainmark frameworks install jax")
    folder = tmp_path_factory.mktemp("jax")
    temporary = folder / "temporary"
    temporary.mkdir()
    path = folder / "rank0-detail.json.gz"
    environment = {**os.environ, "PYTHONPATH": str(SOURCE), "JAX_PLATFORMS": "cpu", "TMPDIR": str(temporary)}
    done = subprocess.run(
        [str(python), str(HERE / "jax_training.py"), str(path)],
        env=environment,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    with gzip.open(path, "rt", encoding="utf-8") as file:
        events = [event for event in json.load(file)["traceEvents"] if event["ph"] == "X"]
    return json.loads(done.stdout), events, temporary


def operators(events: list[dict]) -> list[dict]:
    return [event for event in events if event["cat"] == "cpu_op"]


def test_a_cpu_has_one_pass_and_its_facts(profiled):
    answer, _, _ = profiled
    assert answer["passes"] == ["detail"]
    assert (answer["facts"]["framework"], answer["facts"]["device"]) == ("jax", "cpu")
    assert answer["memory"] is None


def test_every_step_is_annotated(profiled):
    _, events, _ = profiled
    names = [event["name"] for event in events if event["cat"] == "user_annotation"]
    assert [name for name in names if name.startswith("trainmark_step")] == [
        f"trainmark_step#{number}" for number in range(4)
    ]


def test_convolutions_have_their_flop_and_happen_twice_a_step(profiled):
    _, events, _ = profiled
    forward = 2 * 4 * 16 * 16 * 8 * 3 * 3 * 3
    convolutions = [
        event["args"]["flop"]
        for event in operators(events)
        if "conv" in event["args"].get("operator", "") and "flop" in event["args"]
    ]
    assert convolutions == [forward] * 8  # forward and wgrad; the images need no gradient


def test_the_scopes_of_jax_tell_forward_from_backward(profiled):
    _, events, _ = profiled
    products = {
        event["args"]["operator"] for event in operators(events) if "dot" in event["args"]["operator"]
    }
    assert products == {"jit(step)/jvp()/dot_general", "jit(step)/transpose(jvp())/dot_general"}


def test_operators_of_a_thread_nest_or_follow_each_other(profiled):
    _, events, _ = profiled
    for thread in {event["tid"] for event in operators(events)}:
        open_ends: list[int] = []
        spans = sorted(
            (round(event["ts"] * 1000), -round((event["ts"] + event["dur"]) * 1000))
            for event in operators(events)
            if event["tid"] == thread
        )
        for start, end in spans:
            while open_ends and open_ends[-1] <= start:
                open_ends.pop()
            assert not open_ends or -end <= open_ends[-1]
            open_ends.append(-end)


def test_frames_of_python_are_named_as_kineto_names_them(profiled):
    _, events, _ = profiled
    frames = {event["name"] for event in events if event["cat"] == "python_function"}
    assert any(frame.startswith("array.py(") for frame in frames), frames


def test_the_profile_of_jax_is_removed(profiled):
    _, _, temporary = profiled
    assert [path.name for path in temporary.iterdir() if "trainmark" in path.name] == []
