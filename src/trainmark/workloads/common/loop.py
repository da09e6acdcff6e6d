"""The main of every program: refuse, answer, train by steps or epochs, profile, or show what is trained.

The record of a run is written here: how it starts, a step, an evaluation, how it ends.
"""

import json
import os
import sys
import time

import numpy as np

from trainmark import probe
from trainmark.inside.profiler import capture
from trainmark.workloads.common import memory_cap, optimizer, refusal
from trainmark.workloads.common.checkpoint import Checkpoints, TrainingPosition
from trainmark.workloads.common.own_address import AddressGuard
from trainmark.workloads.common.refusal import REFUSED, Refusal


def start_run(spec, opt, training, framework, facts, first_step=0, **more):
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


def train_batch(opt, training, batch, step, epoch_samples):
    """Take a step on the batch; returns a function for its loss, and its learning rate."""
    rate = opt.recipe.learning_rate(step, opt.global_batch, epoch_samples)
    mixing = (
        {"lam": optimizer.mixup_coefficient(opt.recipe.mixup, opt.seed, step)} if opt.recipe.mixup else {}
    )
    training.gradient_clock.begin()
    return training.read(training.step(*batch, rate=rate, **mixing)), rate


def record_step(run, opt, training, stream, step, epoch_samples):
    """Train on the next batch of the stream and record it."""
    asked = time.monotonic()
    batch = next(stream)
    waited = time.monotonic() - asked
    loss, rate = train_batch(opt, training, batch, step, epoch_samples)
    run.step(
        opt.step_samples,
        loss=loss,
        lr=rate,
        data_wait=waited,
        memory=training.memory(),
        **training.gradient_clock.times(),
    )


def end_run(run, opt, training, peaks, **more):
    """End the record with these facts, after `peaks` and what the training fell back to."""
    fallbacks = training.fallbacks()
    facts = dict(peaks, **({"fallbacks": fallbacks} if fallbacks else {}))
    facts.update(more)
    facts.update(training.gradient_clock.facts() if opt.rank == 0 else {})
    run.end(**facts)


HEARTBEAT_SECONDS = 20.0  # who says nothing for long is taken for hung


def _train_by_epochs(spec, opt, training, framework, facts):
    checkpoints = Checkpoints(spec, opt, training, framework) if opt.checkpoints else None
    place = checkpoints.restore() if checkpoints else TrainingPosition()
    feed = spec.feed(opt)
    skipped = checkpoints.skipped if checkpoints else []
    # MLPerf's clock starts where data is first touched, and never pauses.
    record = start_run(
        *(spec, opt, training, framework, facts),
        first_step=place.step,
        process_started=process_started(),
        **epoch_facts(spec, opt, feed, place, skipped),
    )
    loop = EpochLoop(spec, opt, training, feed.open(training), record, checkpoints)
    reached = loop.run(place)
    feed.close()
    more = dict({"reached": reached if opt.until else None}, **feed.end_facts())
    end_run(record, opt, training, training.peaks(), **more)


class EpochLoop:
    """The epochs of one training; every rank takes the same steps and stops at the same one."""

    def __init__(self, spec, opt, training, feed, record, checkpoints):
        self.spec, self.opt, self.training, self.feed = spec, opt, training, feed
        self.record, self.checkpoints = record, checkpoints
        self.epoch_samples = feed.steps_per_epoch * opt.global_batch  # for the rate

    def run(self, place):
        """Whether the target was reached; True where none was set."""
        opt = self.opt
        for epoch in range(place.epoch, opt.recipe.epochs):
            self.train(epoch, place)
            metrics = self.evaluate(epoch)
            place = TrainingPosition(place.step + self.feed.steps_per_epoch - place.index, epoch + 1, 0)
            if opt.until and self.spec.reached(metrics, opt.until):
                return True
            if epoch + 1 < opt.recipe.epochs:
                self.save(place)
        return not opt.until

    def train(self, epoch, place):
        self.record.mark("epoch", epoch=epoch, state="begin")
        stream = iter(self.feed.training(epoch, place.index))
        for index in range(place.index, self.feed.steps_per_epoch):
            step = place.step + index - place.index
            record_step(self.record, self.opt, self.training, stream, step, self.epoch_samples)
            if self.opt.checkpoint_steps and (step + 1) % self.opt.checkpoint_steps == 0:
                self.save(TrainingPosition(step + 1, epoch, index + 1))
        self.record.mark("epoch", epoch=epoch, state="end")

    def evaluate(self, epoch):
        """Return the metrics over the whole validation set, each sample counted once on one of the ranks."""
        self.record.mark("eval", epoch=epoch, state="begin")
        counts, last_mark = [], time.monotonic()
        for batch in self.feed.evaluation():
            counts.append(self.training.evaluate(*batch))
            if time.monotonic() - last_mark > HEARTBEAT_SECONDS:
                self.record.mark("note", epoch=epoch, evaluated=len(counts) * self.opt.batch)
                last_mark = time.monotonic()
        own = np.sum([count() for count in counts], axis=0)
        totals = self.training.total([float(number) for number in own])
        facts, metrics = self.spec.evaluation(totals, self.feed.validation_samples)
        self.record.mark("eval", epoch=epoch, state="end", **dict(facts, **metrics))
        return metrics

    def save(self, place):
        if self.checkpoints is None:
            return
        self.record.settle()  # a kill while it is written must not lose what it holds
        began = time.monotonic()
        size = self.checkpoints.save(place)
        seconds = time.monotonic() - began
        if self.opt.rank == 0:
            failed = None if size is not None else self.checkpoints.failure + "; the last good one stays"
            self.record.mark(
                "checkpoint", step=place.step, epoch=place.epoch, seconds=seconds, bytes=size, failed=failed
            )


def epoch_facts(spec, opt, feed, place, skipped):
    """Return the facts of this training for its `run_start`: the recipe, the data, and where it goes on.

    A training all of whose checkpoints were unreadable goes on at step 0, which voids the steps before.
    """
    facts = {
        "recipe": opt.recipe.name,
        "target": opt.until,
        "metrics": spec.metrics,
        "epochs": opt.recipe.epochs,
        "steps_per_epoch": feed.steps_per_epoch,
    }
    facts.update(feed.start_facts(), seed=opt.seed, departures=departures(opt))
    if place.step or skipped:
        facts["resumed_step"] = place.step
    if skipped:
        facts["checkpoints_skipped"] = skipped
    return facts


def departures(opt):
    """Return what this training does otherwise than its recipe, each in a few words."""
    scale = opt.loss_scale if opt.precision == "amp" else None
    return opt.full_recipe.departures(opt.recipe.epochs, opt.batch, opt.global_batch, scale)


def process_started():
    """Return the seconds since 1970 at which this process began; None where the system does not say."""
    try:
        with open("/proc/self/stat") as file:
            ticks = int(file.read().rpartition(")")[2].split()[19])
        with open("/proc/uptime") as file:
            uptime = float(file.read().split()[0])
        return time.time() - uptime + ticks / os.sysconf("SC_CLK_TCK")
    except (OSError, ValueError):
        return None


is_profile_requested = capture.is_requested
QUEUED_BATCHES = 8  # that a loader makes ahead, and one to copy
HEATING_SECONDS = 2.0  # until a GPU is as hot, and its clocks as low, as in a long training


def profile_steps(opt, training, stream, has_loader):
    """Go on with the training under the profiler of its framework."""
    settling = QUEUED_BATCHES if has_loader else capture.SETTLING_STEPS
    heating = HEATING_SECONDS if opt.device == "cuda" else 0.0
    profile = capture.Capture(
        training.profiler, training.clock(), opt.rank, opt.world_size, settling, heating
    )
    profile.samples_per_step = opt.step_samples
    profile.begin()
    step = opt.steps
    while profile.running:
        with profile.data():
            batch = next(stream)
        train_batch(opt, training, batch, step, opt.epoch_samples)
        profile.step_ended()
        step += 1


def main(spec, framework, training, check, facts):
    """Run one framework's program: its class `training` on the workload `spec`, see `common/training.py`.

    `check(options)` raises Refusal; `facts()` returns the framework's version and the devices it sees.
    """
    program = "{}.{}".format(spec.package, framework)
    opt = spec.parse(sys.argv[1:], program)
    if opt.check:
        _answer_questions(spec, program, check, facts)
        return
    try:
        spec.check(opt)
        check(opt)
    except Refusal as refusal:
        sys.stderr.write("refused: {}\n".format(refusal))
        sys.exit(REFUSED)
    opt.framework = framework
    memory_cap.on_host(opt)
    memory_cap.on_card(opt)
    probe.show_stacks_on_request()  # also of a rank that waits for another which never came
    with AddressGuard():
        begun = training(opt)
    if opt.conform:
        observed = dict(spec.observe(opt, begun), **facts())
        with open(opt.conform.replace("{rank}", str(opt.rank)), "w") as file:
            json.dump(observed, file)
    elif opt.by_epochs:
        _train_by_epochs(spec, opt, begun, framework, facts)
    else:
        _train_by_steps(spec, opt, begun, framework, facts)
    begun.close()


def run_program(spec, framework, training):
    """Run the program of the module `framework`, which has its `machine` and `facts`; see `main`.

    What it cannot do on this machine is refused by the family's table, `spec.refusals`.
    """
    name = framework.__name__.rpartition(".")[2]

    def check(opt):
        refusal.check_machine(spec.refusals, name, opt, **framework.machine(opt))

    main(spec, name, training, check, framework.facts)


def _train_by_steps(spec, opt, training, framework, facts):
    feed = spec.feed(opt)
    stream = feed.open(training).endless() if feed else training.batches()
    record = start_run(spec, opt, training, framework, facts)
    for index in range(opt.steps):
        record_step(record, opt, training, stream, index, opt.epoch_samples)
    if feed and not is_profile_requested():
        feed.close()
    # Under a cap, memory is what is measured; the product would take its own.
    end_run(record, opt, training, {} if opt.memory_cap else training.peaks())
    if is_profile_requested():
        profile_steps(opt, training, stream, has_loader=bool(feed))
        if feed:
            feed.close()


def _answer_questions(spec, program, check, facts):
    """First a line of facts, then for each command line on standard input a line with null or the reason."""
    print(json.dumps(facts()), flush=True)
    for line in sys.stdin:
        question = json.loads(line)
        opt = spec.settle(spec.parse(question["arguments"], program), question["world_size"])
        try:
            spec.check(opt)
            check(opt)
            print("null", flush=True)
        except Refusal as refusal:
            print(json.dumps(str(refusal)), flush=True)
