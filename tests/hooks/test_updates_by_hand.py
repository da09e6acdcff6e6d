"""Programs that update their weights without an optimizer: which backward passes begin a step."""

from __future__ import annotations

import subprocess
import sys
from types import SimpleNamespace

import pytest

torch = pytest.importorskip("torch")
LOOPS = 12


@pytest.fixture
def backward(monkeypatch):
    """`torch.autograd.backward` as a watched program has it, with the steps that it noted."""
    from trainmark.inside.hooks import pytorch_by_hand

    monkeypatch.setattr(pytorch_by_hand, "WEIGHT", pytorch_by_hand.Weight())
    steps = []
    recorder = SimpleNamespace(step=lambda name, start: steps.append(name))
    monkeypatch.setattr(pytorch_by_hand.pytorch, "RECORDER", recorder)
    monkeypatch.delitem(sys.modules, "keras", raising=False)
    module = SimpleNamespace(backward=torch.autograd.backward)
    pytorch_by_hand.watch_backward(module)
    module.backward.steps = steps
    return module.backward


def network():
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.Linear(3, 1))


def loss(model):
    return model(torch.randn(2, 4)).square().mean()


def descend(model):
    for parameter in model.parameters():
        parameter.data.add_(parameter.grad, alpha=-0.1)


def zero(model):
    for parameter in model.parameters():
        if parameter.grad is not None:
            parameter.grad.zero_()


# The first passes are looked at, to be certain; each one after them that follows cleared gradients is a step.
COUNTED = ["by hand"] * (LOOPS - 3)


@pytest.mark.parametrize("clear", [torch.nn.Module.zero_grad, zero])
@pytest.mark.parametrize("passes", [1, 3])
def test_passes_between_two_clearings_of_the_gradients_are_one_step(backward, clear, passes):
    model = network()
    for _ in range(LOOPS):
        clear(model)
        for _ in range(passes):
            backward(loss(model))
        descend(model)
    assert backward.steps == COUNTED


def test_gradients_that_change_no_weight_are_no_training(backward):
    model = network()
    for _ in range(LOOPS):
        model.zero_grad()
        backward(loss(model))
    assert backward.steps == []


def test_gradients_of_an_input_are_not_counted(backward):
    model = network()
    for _ in range(LOOPS):
        model.zero_grad()
        backward(model(torch.randn(2, 4, requires_grad=True)).sum())
        descend(model)
    assert backward.steps == []


def test_a_pass_within_a_pass_is_no_step(backward):
    from torch.autograd import Function

    class Nested(Function):
        @staticmethod
        def forward(context, value, weight):
            context.save_for_backward(weight)
            return value.clone()

        @staticmethod
        def backward(context, gradient):
            with torch.enable_grad():
                backward((context.saved_tensors[0] ** 2).sum())
            return gradient, None

    model = network()
    for _ in range(LOOPS):
        model.zero_grad()
        backward(Nested.apply(loss(model), model[1].bias))
        descend(model)
    assert backward.steps == COUNTED


def test_what_goes_wrong_in_the_look_at_a_graph_never_reaches_the_program(backward):
    model = network()
    strange = SimpleNamespace()  # no tensor: PyTorch itself is to refuse it
    with pytest.raises((TypeError, AttributeError)):
        backward(strange)
    backward(loss(model))
    assert model[0].weight.grad is not None
    assert backward.steps == []


PROGRAM = """
import torch
weight = torch.ones(4, 4, requires_grad=True)
for number in range(60):
    (torch.randn(2, 4) @ weight).square().sum().backward()
    if {optimizer} and number == 30:
        torch.optim.SGD([weight], 0.1)
    with torch.no_grad():
        weight -= 0.001 * weight.grad
        weight.grad.zero_()
"""


@pytest.mark.parametrize("optimizer", [False, True])
def test_an_untouched_program_is_counted_until_it_makes_an_optimizer(tmp_path, optimizer):
    (tmp_path / "train.py").write_text(PROGRAM.format(optimizer=optimizer), encoding="utf-8")
    words = ["run", "--repeats", "1", "--steps", "all", "--warmup", "2", "--runs", "runs", "--name", "hand"]
    command = [sys.executable, "-m", "trainmark", *words, "--", sys.executable, "train.py"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    (stream,) = (tmp_path / "runs/hand").glob("trials/*/01/events/rank0.jsonl")
    text = stream.read_text(encoding="utf-8")
    assert "weights updated by hand" in text
    assert text.count('"event":"step"') == (28 if optimizer else 57)
