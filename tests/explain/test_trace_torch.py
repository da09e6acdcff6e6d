"""What the profiler of PyTorch writes on a CPU is a profile."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from trainmark.explain import chrome_trace
from trainmark.explain.profile import HostKind


@pytest.fixture(scope="module")
def profile(tmp_path_factory):
    torch = pytest.importorskip("torch")
    model = torch.nn.Sequential(
        torch.nn.Conv2d(3, 8, 3, stride=2), torch.nn.Flatten(), torch.nn.Linear(392, 10)
    )
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    images = torch.randn(4, 3, 16, 16)
    path = tmp_path_factory.mktemp("torch") / "trace.json.gz"
    activities = [torch.profiler.ProfilerActivity.CPU]
    with torch.profiler.profile(activities=activities, record_shapes=True, with_stack=True) as profiler:
        for number in range(4):
            with torch.profiler.record_function(f"trainmark_step#{number}"):
                optimizer.zero_grad()
                model(images).sum().backward()
                optimizer.step()
    profiler.export_chrome_trace(str(path))
    return chrome_trace.read(path)


def test_every_step_but_the_first_is_there_without_a_gap(profile):
    assert profile.device == "cpu"
    assert [step.number for step in profile.steps] == [1, 2, 3]
    assert all(first.end == second.start for first, second in pairwise(profile.steps))


def test_operators_own_times_do_not_overlap_and_fill_no_more_than_the_step(profile):
    assert len(set(profile.spans.stream.tolist())) == 1
    starts, ends = profile.spans.start, profile.spans.end
    assert (starts[1:] >= ends[:-1]).all()
    for step in profile.steps:
        busy = np.clip(np.minimum(ends, step.end) - np.maximum(starts, step.start), 0, None).sum()
        assert 0 < busy <= step.end - step.start


def test_a_convolution_has_its_shapes_and_stride(profile):
    names = [profile.host.names[name] for name in profile.host.name]
    operands = profile.host.operands[names.index("aten::conv2d")]
    assert operands.shapes[:3] == ((4, 3, 16, 16), (8, 3, 3, 3), (8,))
    assert operands.types[:3] == ("float", "float", "float")
    assert operands.values[3] == "[2, 2]"


def test_forward_and_backward_of_an_operator_share_a_sequence_number(profile):
    names = [profile.host.names[name] for name in profile.host.name]
    backward = names.index("ConvolutionBackward0")
    same = profile.host.sequence == profile.host.sequence[backward]
    assert "aten::conv2d" in {name for name, shares in zip(names, same, strict=True) if shares}


def test_modules_and_lines_of_python_are_among_the_host_spans(profile):
    frames = {profile.host.names[name] for name in profile.host.name[profile.host.kind == HostKind.PYTHON]}
    assert "nn.Module: Conv2d_0" in frames
    assert any(frame.startswith("torch/optim/sgd.py(") for frame in frames)
