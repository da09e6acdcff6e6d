"""Training by epochs with an evaluation after each, until the target metrics or the last epoch is reached."""

import os
import time

import numpy as np

from trainmark.workloads.common import run
from trainmark.workloads.common.checkpoints.checkpoint import Checkpoints, Place

HEARTBEAT_SECONDS = 20.0  # who says nothing for long is taken for hung


def train(spec, opt, training, framework, facts):
    checkpoints = Checkpoints(spec, opt, training, framework) if opt.checkpoints else None
    place = checkpoints.restore() if checkpoints else Place()
    feed = spec.feed(opt)
    skipped = checkpoints.skipped if checkpoints else []
    # MLPerf's clock starts where data is first touched, and never pauses.
    record = run.start(
        *(spec, opt, training, framework, facts),
        first_step=place.step,
        process_started=process_started(),
        **start_facts(spec, opt, feed, place, skipped),
    )
    loop = EpochLoop(spec, opt, training, feed.open(training), record, checkpoints)
    reached = loop.run(place)
    feed.close()
    more = dict({"reached": reached if opt.until else None}, **feed.end_facts())
    run.end(record, opt, training, training.peaks(), **more)


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
            place = Place(place.step + self.feed.steps_per_epoch - place.index, epoch + 1, 0)
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
            run.take_step(self.record, self.opt, self.training, stream, step, self.epoch_samples)
            if self.opt.checkpoint_steps and (step + 1) % self.opt.checkpoint_steps == 0:
                self.save(Place(step + 1, epoch, index + 1))
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


def start_facts(spec, opt, feed, place, skipped):
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
