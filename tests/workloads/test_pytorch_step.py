from __future__ import annotations

import math

import pytest
from pytorch_workload import CPU, asked, small_network, synthetic_batch, torch, workload

from trainmark.workloads.resnet50.shared import recipe


def stepping(*arguments: str, rate: float = 0.01):
    """The workload's step on the small network, and a batch for it."""
    opt = asked(*arguments)
    step = workload.Step(opt, small_network(), CPU)
    step.rate.fill_(rate)
    return step, synthetic_batch(opt, CPU)


def overflow_in(step):
    """From now on one gradient of every step is infinite; removing what is returned ends it."""
    some = next(step.model.parameters())
    return some.register_hook(lambda gradient: torch.full_like(gradient, math.inf))


def weights_of(step):
    return [parameter.detach().clone() for parameter in step.model.parameters()]


def momenta_of(step):
    return [step.optimizer.state[parameter]["momentum_buffer"] for parameter in step.model.parameters()]


def all_equal(some, others):
    return all(torch.equal(a, b) for a, b in zip(some, others, strict=True))


def test_weight_decay_is_on_everything_but_batch_norm():
    model = workload.ResNet50()
    groups = workload.Step(asked(), model, CPU).optimizer.param_groups
    decay = {id(p): group["weight_decay"] for group in groups for p in group["params"]}
    norms = {id(p) for m in model.modules() if isinstance(m, torch.nn.BatchNorm2d) for p in m.parameters()}
    assert len(norms) == 2 * 53
    assert decay == {id(p): 0.0 if id(p) in norms else 3.0517578125e-05 for p in model.parameters()}


def test_two_steps_are_those_of_momentum_with_decay_worked_out_by_hand():
    step, batch = stepping(rate=0.1)
    norms = {id(p) for p in step.optimizer.param_groups[0]["params"]}
    expected, momenta = weights_of(step), [torch.zeros_like(p) for p in step.model.parameters()]
    for _ in range(2):
        step(*batch)
        for weights, momentum, parameter in zip(expected, momenta, step.model.parameters(), strict=True):
            decay = 0.0 if id(parameter) in norms else recipe.STANDARD.weight_decay
            momentum.mul_(0.875).add_(parameter.grad + decay * weights)
            weights.sub_(0.1 * momentum)
    for weights, parameter in zip(expected, step.model.parameters(), strict=True):
        torch.testing.assert_close(parameter.detach(), weights)


def test_the_loss_is_cross_entropy_with_a_tenth_spread_over_all_classes():
    step, (images, labels) = stepping()
    logs = step.model(images).log_softmax(dim=1)
    right = logs.gather(1, labels[:, None]).mean()
    expected = -(0.9 * right + 0.1 * logs.mean())
    torch.testing.assert_close(step(images, labels), expected.detach())


def test_the_whole_network_learns_a_batch_by_heart():
    opt = asked("--batch", "8")
    step = workload.Step(opt, workload.build_model(opt, CPU), CPU)
    batch = synthetic_batch(opt, CPU)
    step.rate.fill_(0.005)
    losses = [step(*batch).item() for _ in range(12)]
    assert losses[0] == pytest.approx(math.log(1000), rel=0.3)
    assert losses[-1] < losses[0] / 2


def test_a_rate_of_zero_moves_no_weight():
    step, batch = stepping(rate=0.0)
    before = weights_of(step)
    step(*batch)
    assert all_equal(weights_of(step), before)


@pytest.mark.parametrize(
    "arguments",
    [
        ("--precision", "fp32"),
        ("--precision", "bf16"),
        ("--precision", "amp"),
        ("--precision", "amp", "--loss-scale", "128"),
    ],
    ids=" ".join,
)
def test_the_loss_falls_in_every_precision(arguments):
    step, batch = stepping(*arguments, rate=0.2)
    losses = [step(*batch).item() for _ in range(8)]
    assert losses[-1] < losses[0] - 0.5


@pytest.mark.parametrize(("precision", "dtype"), [("bf16", torch.bfloat16), ("amp", torch.float16)])
def test_half_precision_computes_in_half_and_keeps_the_weights_in_full(precision, dtype):
    step, batch = stepping("--precision", precision)
    seen = []
    step.model[0].register_forward_hook(lambda module, inputs, output: seen.append(output.dtype))
    assert step(*batch).dtype == torch.float32
    assert seen == [dtype]
    assert {parameter.dtype for parameter in step.model.parameters()} == {torch.float32}


def test_the_loss_scale_changes_no_weight():
    full, batch = stepping("--precision", "amp", "--loss-scale", "1")
    scaled, _ = stepping("--precision", "amp", "--loss-scale", "128")
    full(*batch)
    scaled(*batch)
    for one, other in zip(weights_of(full), weights_of(scaled), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-3, atol=1e-5)


def test_a_static_scale_stays_exactly_what_it_is_over_many_steps_and_an_overflow():
    step, batch = stepping("--precision", "amp", "--loss-scale", "128")
    for _ in range(20):
        step(*batch)
    overflow = overflow_in(step)
    step(*batch)
    overflow.remove()
    step(*batch)
    assert step.scaler.get_scale() == 128.0


def test_a_static_scale_does_not_grow_where_a_dynamic_one_would():
    step, batch = stepping("--precision", "amp", "--loss-scale", "128")
    step.scaler.set_growth_interval(1)
    step(*batch)
    assert step.scaler.get_scale() == 128.0


def test_a_dynamic_scale_starts_at_65536_and_halves_after_an_overflow():
    step, batch = stepping("--precision", "amp")
    overflow_in(step)
    assert step.scaler.get_scale() == 65536.0
    step(*batch)
    assert step.scaler.get_scale() == 32768.0


@pytest.mark.parametrize("scale", ["dynamic", "128"])
def test_an_overflow_leaves_weights_and_momentum_alone(scale):
    step, batch = stepping("--precision", "amp", "--loss-scale", scale)
    step(*batch)
    overflow = overflow_in(step)
    weights, momenta = weights_of(step), [momentum.clone() for momentum in momenta_of(step)]
    step(*batch)
    assert all_equal(weights_of(step), weights)
    assert all_equal(momenta_of(step), momenta)
    overflow.remove()
    step(*batch)
    assert not all_equal(weights_of(step), weights)


def test_an_overflow_in_the_very_first_step_leaves_no_momentum():
    step, batch = stepping("--precision", "amp")
    overflow_in(step)
    step(*batch)
    assert not any(momentum.any() for momentum in momenta_of(step))
