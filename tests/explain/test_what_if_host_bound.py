"""Steps in which the device waits for the host: what a change leaves of the waiting."""

from dataclasses import replace

import pytest
from builders_what_if import MS, USUAL, gpu_step

from trainmark.explain.what_if.changes import predict
from trainmark.explain.what_if.situation import TrainingSettings

TURNED = replace(USUAL["convolution"], layout_copies=15 * MS, launches=360)
CHANNELS_FIRST = TrainingSettings(framework="pytorch", precision="tf32", layout="NCHW", batch=32)


def predicted(situation):
    return {what_if.name: what_if for what_if in predict(situation)}


def bound_by_host(waiting, **more):
    """Return a step that the host takes as long to issue as the device takes for it, waiting included."""
    step = gpu_step(idle={"launch": waiting}, gaps={"launch": 400}, **more)
    return replace(step, host=step.step)


def test_compiling_relieves_the_host_of_nothing_and_says_to_capture_a_graph():
    step = bound_by_host(40 * MS)
    compiled = predicted(step)["compile"]
    assert compiled.seconds == pytest.approx(step.step)
    assert compiled.waits_for_host
    assert "capture a graph as well" in compiled.why


def test_a_host_that_is_early_is_not_spoken_of():
    compiled = predicted(gpu_step(host=5 * MS))["compile"]
    assert not compiled.waits_for_host
    assert "graph" not in compiled.why


def test_channels_last_spares_the_host_no_more_than_the_launches_of_what_it_removes():
    step = bound_by_host(60 * MS, convolution=TURNED, settings=CHANNELS_FIRST)
    what_if = predicted(step)["channels last"]
    removed = 15 / 40 * 360
    assert what_if.seconds == pytest.approx(step.step - removed * 5e-6, rel=1e-3)
    assert what_if.waits_for_host


def test_a_captured_step_does_not_wait_for_the_host():
    assert not predicted(bound_by_host(40 * MS))["graph"].waits_for_host


def test_twice_the_batch_hides_the_waiting_where_the_device_gets_busy_enough():
    assert not predicted(bound_by_host(40 * MS))["batch ×2"].waits_for_host
    assert predicted(bound_by_host(400 * MS))["batch ×2"].waits_for_host


def test_on_a_cpu_the_host_is_the_device():
    step = replace(bound_by_host(40 * MS), device="cpu")
    assert not any(what_if.waits_for_host for what_if in predict(step))


def test_what_waits_for_the_host_has_the_interval_of_such_steps():
    waiting, early = predicted(bound_by_host(40 * MS)), predicted(gpu_step())
    assert "steps that wait for the host" in waiting["compile"].basis
    assert "predictions of it" in early["compile"].basis
