"""Models by the variables that hold them."""

from __future__ import annotations

import sys

import pytest

torch = pytest.importorskip("torch")

from trainmark.inside.profiler.pytorch_names import model_names  # noqa: E402


class Trainer:
    def __init__(self):
        self.critic = torch.nn.Sequential(torch.nn.Linear(4, 4))


def profiled(*models):
    profile = torch.profiler._KinetoProfile(
        activities=[torch.profiler.ProfilerActivity.CPU], record_shapes=True, with_stack=True
    )
    profile.prepare_trace()
    profile.start_trace()
    for model in models:
        model(torch.ones(2, 4))
    profile.stop_trace()
    return profile


def test_models_are_named_by_variables_and_attributes_in_the_order_they_were_called():
    generator, trainer = torch.nn.Sequential(torch.nn.Linear(4, 4)), Trainer()
    profile = profiled(trainer.critic, generator, torch.nn.Sequential(torch.nn.ReLU()))
    names = model_names(profile, sys._getframe())
    assert names == {"Sequential_0": "trainer.critic", "Sequential_1": "generator"}
