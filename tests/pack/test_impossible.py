"""Keys and times that cannot be, whatever the events say."""

from __future__ import annotations

from dataclasses import replace

import pytest

from trainmark.measure.key import Key
from trainmark.store.verify import AHEAD_SECONDS, foreign_device, impossible_counts, impossible_time

KEY = Key("softmax", batch_per_device=8, threads=2, device="Xeon")
XEON = {"host": {"cpu": {"model": "Xeon"}}, "devices": {"gpus": []}}
H200 = {"host": {"cpu": {"model": "Xeon"}}, "devices": {"gpus": [{"name": "NVIDIA H200"}]}}


@pytest.mark.parametrize("name", ["nodes", "devices_per_node", "batch_per_device", "threads"])
@pytest.mark.parametrize("value", [-1, 0, 2**31])
def test_a_count_that_cannot_be_is_named(name, value):
    assert f"key.{name}" in dict(impossible_counts(replace(KEY, **{name: value})))


def test_counts_that_are_not_known_or_ordinary_are_nothing_to_speak_of():
    assert list(impossible_counts(KEY)) == list(impossible_counts(Key("train"))) == []
    assert list(impossible_counts(replace(KEY, nodes=1024, devices_per_node=8, batch_per_device=1))) == []


def test_a_start_more_than_a_day_ahead_names_both_clocks():
    assert impossible_time(1e9, now=1e9) is impossible_time(1e9 + AHEAD_SECONDS, now=1e9) is None
    reason = impossible_time(4e9, now=1_795_000_000.0)
    assert "is 2096-10-02 07:06 UTC" in reason and "it is 2026-11-18 11:06 UTC" in reason
    assert impossible_time(9e10, now=0.0)


@pytest.mark.parametrize(
    ("device", "environment", "foreign"),
    [
        ("Xeon", XEON, False),
        ("NVIDIA H200", XEON, True),
        ("NVIDIA H200", H200, False),
        ("Xeon", H200, False),
        ("NVIDIA A100", H200, True),
        ("cpu", {"host": {"cpu": {"model": None}}, "devices": {"gpus": []}}, False),
        (None, XEON, False),
        ("NVIDIA H200", {"host": {"cpu": {"model": "Xeon"}}, "devices": {"gpus": [{"name": None}]}}, False),
        ("NVIDIA H200", {}, False),
        ("NVIDIA H200", {"host": "x", "devices": []}, False),
    ],
)
def test_a_device_is_one_of_the_environment_as_far_as_that_is_known(device, environment, foreign):
    assert (foreign_device(replace(KEY, device=device), environment) is not None) == foreign
