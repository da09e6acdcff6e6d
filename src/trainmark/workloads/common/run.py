"""The record of a run: how it starts, a step, how it ends."""

import time

from trainmark import probe
from trainmark.workloads.common.optimizer import mixup


def start(spec, opt, training, framework, facts, first_step=0, **more):
    counts = {
        "hardware_flops_per_sample": spec.hardware_flops_per_sample(opt),
        "flops_by_convention": spec.flops_by_convention(opt),
    }
    more.update((name, value) for name, value in counts.items() if value is not None)
    return probe.start(
        unit=spec.unit,
        clock=training.clock(),
        framework=framework,
        workload=spec.name,
        first_step=first_step,
        device_name=training.device_name(),
        flops_per_sample=spec.flops_per_sample(opt),
        bytes_per_sample=spec.bytes_per_sample(opt),
        **dict(training.start_facts(), **dict(more, **facts())),
    )


def train(opt, training, batch, step, epoch_samples):
    """Take a step on the batch; returns a function for its loss, and its learning rate."""
    rate = opt.recipe.learning_rate(step, opt.global_batch, epoch_samples)
    mixing = {"lam": mixup.coefficient(opt.recipe.mixup, opt.seed, step)} if opt.recipe.mixup else {}
    training.gradient_clock.begin()
    return training.read(training.step(*batch, rate=rate, **mixing)), rate


def take_step(run, opt, training, stream, step, epoch_samples):
    """Train on the next batch of the stream and record it."""
    asked = time.monotonic()
    batch = next(stream)
    waited = time.monotonic() - asked
    loss, rate = train(opt, training, batch, step, epoch_samples)
    run.step(
        opt.step_samples,
        loss=loss,
        lr=rate,
        data_wait=waited,
        memory=training.memory(),
        **training.gradient_clock.times(),
    )


def end(run, opt, training, peaks, **more):
    """End the record with these facts, after `peaks` and what the training fell back to."""
    fallbacks = training.fallbacks()
    facts = dict(peaks, **({"fallbacks": fallbacks} if fallbacks else {}))
    facts.update(more)
    facts.update(training.gradient_clock.facts() if opt.rank == 0 else {})
    run.end(**facts)
