"""A real training on the CPU with planted sleeps, profiled by PyTorch."""

from __future__ import annotations

import time

import pytest

from trainmark.explain.breakdown import breakdown
from trainmark.explain.chrome_trace import read
from trainmark.explain.idle import causes
from trainmark.explain.kernel_classes import classes_of

torch = pytest.importorskip("torch")

STEPS = 4
LOADER_SLEEP, LOG_SLEEP = 0.05, 0.01
MOST_TRIES, MOST_DISTURBED = 6, 1.3


def sleeping_loader():
    time.sleep(LOADER_SLEEP)
    return torch.ones(8, 16)


def write_log():
    time.sleep(LOG_SLEEP)


def profiled(path):
    model = torch.nn.Linear(16, 16)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    settings = {"with_stack": True, "record_shapes": True}
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], **settings) as profiler:
        for step in range(STEPS + 1):
            with torch.profiler.record_function(f"trainmark_step#{step}"):
                with torch.profiler.record_function("trainmark_data"):
                    batch = sleeping_loader()
                model(batch).sum().backward()
                optimizer.step()
                write_log()
    profiler.export_chrome_trace(str(path))
    return read(path)


@pytest.fixture(scope="module")
def idle(tmp_path_factory):
    """What else this machine does may stop the host for longer than the sleeps: then it is profiled again."""
    for number in range(MOST_TRIES):
        profile = profiled(tmp_path_factory.mktemp("trace") / f"trace{number}.json")
        parts = breakdown(profile, classes_of(profile, None))
        if parts.total < MOST_DISTURBED * STEPS * (LOADER_SLEEP + LOG_SLEEP) * 1e9:
            break
    return parts, causes(profile, parts.gaps)


def test_the_sleeping_loader_is_first_with_the_function_that_sleeps(idle):
    _, (loader, *_) = idle
    assert loader.cause == "loader"
    assert loader.nanoseconds >= STEPS * LOADER_SLEEP * 1e9
    assert loader.evidence[0].startswith("next batch: sleep at ")
    assert "sleeping_loader · 1×" in loader.evidence[0]


def test_a_sleep_outside_the_loader_is_the_hosts(idle):
    _, rows = idle
    (launch,) = [row for row in rows if row.cause == "launch"]
    assert STEPS * LOG_SLEEP * 1e9 <= launch.nanoseconds < STEPS * LOADER_SLEEP * 1e9
    assert "sleep at " in launch.evidence[0]
    assert "write_log" in launch.evidence[0]


def test_the_causes_add_up_to_the_idle_time_of_the_breakdown(idle):
    parts, rows = idle
    assert sum(row.nanoseconds for row in rows) == parts.idle
