"""What a case and its profile say of how it trains, before anything is predicted."""

import pytest

from trainmark.explain.profile.folder import Captured, CapturedRank
from trainmark.runner.explain.explained import measured_issue_seconds
from trainmark.runner.explain.situation import settings_of
from trainmark.suite import load

GPT2 = """
workload: gpt2
framework: {framework}
precision: bf16
batch_per_device: 8
device: cuda
"""


def settings(framework="pytorch", more=""):
    (case,) = load.parse(GPT2.format(framework=framework) + more, "suite.yaml").cases
    return settings_of(case)


def captured(device, manifest):
    rank = CapturedRank(0, 1, "pytorch", device, None, None, None, (0.02,), (0.02,), manifest)
    return Captured((rank,))


@pytest.mark.parametrize(
    ("framework", "more", "with_the_update"),
    [
        ("pytorch", "", True),
        ("tensorflow", "", True),
        ("paddle", "", False),
        ("pytorch", "sharding: fsdp\ntopology: 1n2g\n", False),
        ("pytorch", "engine: plain\n", False),
    ],
)
def test_whether_compile_is_for_the_update_too(framework, more, with_the_update):
    assert settings(framework, more).compiles_update is with_the_update


def test_the_host_is_as_fast_as_in_its_fastest_step():
    seconds = {"host_step_seconds": [0.0178, 0.0263, 0.0172]}
    assert measured_issue_seconds(captured("cuda", seconds)) == 0.0172
    assert measured_issue_seconds(captured("cpu", seconds)) is None
    assert measured_issue_seconds(captured("cuda", {"host_step_seconds": []})) is None
    assert measured_issue_seconds(captured("cuda", {})) is None
