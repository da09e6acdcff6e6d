"""Steps of real JAX and TensorFlow programs on the CPU, by interpreters of `trainmark frameworks`."""

from __future__ import annotations

import gzip
import json
import os
import subprocess
from pathlib import Path

import pytest

from trainmark.explain import chrome_trace
from trainmark.explain.kernel_classes import ONEDNN, own_classes
from trainmark.machine.frameworks.installed import python_of

pytestmark = pytest.mark.usefixtures("installed_environments")
HERE = Path(__file__).parent
SOURCE = HERE.parents[1] / "src"


def profile(framework: str, folder: Path) -> tuple[dict, list[dict], Path]:
    """Return what the program printed, its trace, and the folder for temporary files as it left it."""
    python = python_of(framework)
    if python is None:
        pytest.skip(f"{framework} is not installed: trainmark frameworks install {framework}")
    temporary = folder / "temporary"
    temporary.mkdir()
    path = folder / "rank0-detail.json.gz"
    environment = {
        **os.environ,
        "PYTHONPATH": str(SOURCE),
        "JAX_PLATFORMS": "cpu",
        "CUDA_VISIBLE_DEVICES": "",
        "TF_CPP_MIN_LOG_LEVEL": "3",
        "TMPDIR": str(temporary),
    }
    timing = folder / "rank0-timing.json.gz"
    command = [str(python), str(HERE / f"{framework}_training.py"), str(timing), str(path)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    with gzip.open(path, "rt", encoding="utf-8") as file:
        events = [event for event in json.load(file)["traceEvents"] if event["ph"] == "X"]
    return json.loads(done.stdout), events, temporary


@pytest.fixture(scope="module")
def jax_profile(tmp_path_factory, installed_environments):
    return profile("jax", tmp_path_factory.mktemp("jax"))


@pytest.fixture(scope="module")
def tensorflow_profile(tmp_path_factory, installed_environments):
    return profile("tensorflow", tmp_path_factory.mktemp("tensorflow"))


@pytest.fixture(params=["jax", "tensorflow"])
def profiled(request):
    """Both, one after the other."""
    return request.param, *request.getfixturevalue(f"{request.param}_profile")


def operators(events: list[dict]) -> list[dict]:
    return [event for event in events if event["cat"] == "cpu_op"]


def test_a_cpu_has_two_passes_and_its_facts(profiled):
    framework, answer, _, _ = profiled
    assert answer["passes"] == ["timing", "detail"]
    assert (answer["facts"]["framework"], answer["facts"]["device"]) == (framework, "cpu")
    assert answer["memory"] is None


def test_every_step_is_annotated(profiled):
    _, _, events, _ = profiled
    names = [event["name"] for event in events if event["cat"] == "user_annotation"]
    assert [name for name in names if name.startswith("trainmark_step")] == [
        f"trainmark_step#{number}" for number in range(4)
    ]


def test_operators_of_a_thread_nest_or_follow_each_other(profiled):
    _, _, events, _ = profiled
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


def test_the_folder_of_the_framework_s_profile_is_removed(profiled):
    _, _, _, temporary = profiled
    assert [path.name for path in temporary.iterdir() if "trainmark" in path.name] == []


def test_the_timing_pass_has_the_same_operators_and_no_frames_of_python(profiled):
    _, _, events, temporary = profiled
    with gzip.open(temporary.parent / "rank0-timing.json.gz", "rt", encoding="utf-8") as file:
        timing = [event for event in json.load(file)["traceEvents"] if event["ph"] == "X"]
    names = {event["name"] for event in operators(timing)}
    assert names == {event["name"] for event in operators(events)}
    assert "python_function" not in {event["cat"] for event in timing}


def test_nearly_all_of_a_step_has_a_class(profiled):
    profile = chrome_trace.read(profiled[3].parent / "rank0-timing.json.gz")
    lasting = (profile.spans.end - profile.spans.start).tolist()
    classes = own_classes(profile)
    other = sum(time for time, name in zip(lasting, classes, strict=True) if name == "other")
    assert other < 0.05 * sum(lasting)
    assert {"convolution", "matrix product"} <= set(classes)


def test_frames_of_python_are_named_as_kineto_names_them(jax_profile):
    _, events, _ = jax_profile
    frames = {event["name"] for event in events if event["cat"] == "python_function"}
    assert any(frame.startswith("array.py(") for frame in frames), frames


def test_convolutions_of_jax_have_their_flop_and_happen_twice_a_step(jax_profile):
    _, events, _ = jax_profile
    forward = 2 * 4 * 16 * 16 * 8 * 3 * 3 * 3
    convolutions = [
        event["args"]["flop"]
        for event in operators(events)
        if "conv" in event["args"].get("operator", "") and "flop" in event["args"]
    ]
    assert convolutions == [forward] * 8  # forward and wgrad; the images need no gradient


def test_the_scopes_of_jax_tell_forward_from_backward(jax_profile):
    _, events, _ = jax_profile
    names = {event["args"]["operator"] for event in operators(events)}
    products = {name for name in names if name.endswith("dot_general")}
    assert products == {"jit(step)/jvp()/dot_general", "jit(step)/transpose(jvp())/dot_general"}


def test_operators_of_tensorflow_have_their_type_and_their_name_in_the_graph(tensorflow_profile):
    _, events, _ = tensorflow_profile
    types = [ONEDNN.sub("", event["name"]) for event in operators(events)]  # oneDNN's where it is used
    rows = list(zip(types, (event["args"]["operator"] for event in operators(events)), strict=True))
    assert rows.count(("Conv2D", "Conv2D")) == 4
    assert sum(name == "Conv2DBackpropFilter" and "gradient_tape" in path for name, path in rows) == 4
    assert sum(name == "MatMul" for name, _ in rows) == 3 * 4
