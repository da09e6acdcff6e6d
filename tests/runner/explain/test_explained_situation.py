"""What a case and its profile say of how it trains, before anything is predicted."""

from dataclasses import replace

import pytest

from trainmark.explain.explained_trial import issue_seconds, measured_issue_seconds, settings_of
from trainmark.explain.profile import Collector, HostKind, Profile
from trainmark.explain.profile_folder import Captured, CapturedRank
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


def test_a_host_that_waited_for_room_in_the_queue_is_as_fast_as_its_profile_says():
    collector = Collector()
    for step in range(0, 40_000_000, 20_000_000):
        collector.host(f"trainmark_step#{step}", step, step + 20_000_000, kind=HostKind.ANNOTATION)
        collector.host("cudaLaunchKernel", step, step + 15_000_000, kind=HostKind.RUNTIME)
    profile = Profile("cuda", collector.device_spans(), collector.host_spans(), ())
    waited = captured("cuda", {"host_step_seconds": [0.0195]})
    assert issue_seconds(waited, profile) == pytest.approx(0.005, rel=0.01)
    assert issue_seconds(captured("cuda", {"host_step_seconds": [0.004]}), profile) == 0.004
    assert issue_seconds(captured("cuda", {}), replace(profile, device="cpu")) is None
