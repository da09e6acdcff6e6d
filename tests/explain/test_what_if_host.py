"""The host's own time of a step: its span without what it waited for."""

from trainmark.explain.profile import Collector, HostKind, Profile
from trainmark.explain.what_if.situation import host_seconds

MICROSECOND = 1000


def profile_of(calls, device="cuda"):
    """Three steps of 1,000 µs with the same calls in each: name, start and duration in µs."""
    collector = Collector()
    for step in range(3):
        begin = step * 1000
        collector.host(
            f"trainmark_step#{step}",
            begin * MICROSECOND,
            (begin + 1000) * MICROSECOND,
            kind=HostKind.ANNOTATION,
        )
        for name, start, duration in calls:
            first = (begin + start) * MICROSECOND
            collector.host(name, first, first + duration * MICROSECOND, kind=HostKind.RUNTIME)
    return Profile(device, collector.device_spans(), collector.host_spans(), ())


def test_a_host_that_waits_for_nothing_takes_its_whole_step():
    assert host_seconds(profile_of([("cudaLaunchKernel", 100, 5)])) == 1000e-6


def test_what_the_host_waits_for_the_device_is_not_its_own_time():
    calls = [("cudaLaunchKernel", 100, 5), ("cudaStreamSynchronize", 200, 300), ("cudaMemcpy", 600, 100)]
    assert host_seconds(profile_of(calls)) == 600e-6


def test_a_launch_that_waits_for_room_in_the_queue_counts_as_a_launch_alone():
    assert host_seconds(profile_of([("cudaLaunchKernel", 100, 420)])) == 600e-6


def test_an_asynchronous_copy_is_a_launch():
    assert host_seconds(profile_of([("cudaMemcpyAsync", 100, 10)])) == 1000e-6


def test_a_profile_without_runtime_calls_or_of_a_cpu_tells_nothing():
    assert host_seconds(profile_of([])) is None
    assert host_seconds(profile_of([("cudaLaunchKernel", 100, 5)], device="cpu")) is None
