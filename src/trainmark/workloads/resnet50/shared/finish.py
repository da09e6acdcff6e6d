"""Training to a finish line: epochs with an evaluation after each, until the target or the last epoch.

Runs inside every framework's interpreter: standard library and numpy only, Python 3.7+.
"""

import os
import time

import numpy as np

from trainmark import probe
from trainmark.workloads.resnet50.shared import ending, gradient_clock, options, recipe
from trainmark.workloads.resnet50.shared.checkpoint import Checkpoints, Place
from trainmark.workloads.resnet50.shared.feed import Feed

SILENCE_SECONDS = 20.0  # who says nothing for long is taken for hung


def train(opt, training, framework, facts):
    checkpoints = Checkpoints(opt, training, framework) if opt.checkpoints else None
    place = checkpoints.restore() if checkpoints else Place()
    feed = Feed(opt)
    # MLPerf's clock starts where data is first touched, and never pauses.
    run = probe.start(
        unit="images",
        clock=training.clock(),
        framework=framework,
        workload="resnet50",
        first_step=place.step,
        device_name=training.device_name(),
        flops_per_sample=recipe.flops_per_image(opt.image_size),
        bytes_per_sample=options.bytes_per_image(opt),
        process_started=process_started(),
        **dict(asked(opt, feed, place), **facts()),
    )
    course = Course(opt, training, feed.open(training), run, checkpoints)
    reached = course.run(place)
    feed.close()
    told = dict(ending.peaks_of(training), **ending.fallbacks_of(training))
    run.end(**dict(told, reached=reached if opt.until else None, **course.ending()))


class Course:
    """The epochs of one training; every rank goes the same way and turns at the same step."""

    def __init__(self, opt, training, feed, run, checkpoints):
        self.opt, self.training, self.feed = opt, training, feed
        self.marks, self.checkpoints = run, checkpoints
        self.images = feed.steps_per_epoch * opt.global_batch  # of an epoch, for the rate
        self.waiting = getattr(training, "gradient_clock", gradient_clock.Untimed())

    def run(self, place):
        """Whether the target was reached; True where none was set."""
        opt = self.opt
        for epoch in range(place.epoch, opt.recipe.epochs):
            self.train(epoch, place)
            accuracy = self.evaluate(epoch)
            place = Place(place.step + self.feed.steps_per_epoch - place.index, epoch + 1, 0)
            if opt.until and all(accuracy[name] >= share for name, share in opt.until.items()):
                return True
            if epoch + 1 < opt.recipe.epochs:
                self.save(place)
        return not opt.until

    def train(self, epoch, place):
        opt, training = self.opt, self.training
        self.marks.mark("epoch", epoch=epoch, state="begin")
        stream = iter(self.feed.training(epoch, place.index))
        for index in range(place.index, self.feed.steps_per_epoch):
            asked = time.monotonic()
            images, labels = next(stream)
            waited = time.monotonic() - asked
            step = place.step + index - place.index
            rate = opt.recipe.learning_rate(step, opt.global_batch, self.images)
            self.waiting.begin()
            loss = training.step(images, labels, rate, kept_share(opt, step))
            self.marks.step(
                opt.batch,
                loss=training.read(loss),
                lr=rate,
                data_wait=waited,
                memory=training.memory(),
                **self.waiting.times(),
            )
            if opt.checkpoint_steps and (step + 1) % opt.checkpoint_steps == 0:
                self.save(Place(step + 1, epoch, index + 1))
        self.marks.mark("epoch", epoch=epoch, state="end")

    def evaluate(self, epoch):
        """Shares of the whole validation set, each image counted once on one of the ranks."""
        self.marks.mark("eval", epoch=epoch, state="begin")
        counts, said = [], time.monotonic()
        for batch in self.feed.evaluation():
            counts.append(self.training.evaluate(*batch))
            if time.monotonic() - said > SILENCE_SECONDS:
                self.marks.mark("note", epoch=epoch, evaluated=len(counts) * self.opt.batch)
                said = time.monotonic()
        own = np.sum([count() for count in counts], axis=0)
        top1, top5 = (round(number) for number in self.training.total([float(n) for n in own]))
        images = self.feed.validation_images
        accuracy = {"top1": top1 / images, "top5": top5 / images}
        self.marks.mark(
            "eval", epoch=epoch, state="end", correct1=top1, correct5=top5, images=images, **accuracy
        )
        return accuracy

    def save(self, place):
        if self.checkpoints is None:
            return
        self.marks.settle()  # a kill while it is written must not lose what it holds
        began = time.monotonic()
        size = self.checkpoints.save(place)
        seconds = time.monotonic() - began
        if self.opt.rank == 0:
            failed = None if size is not None else "no room; the last good one stays"
            self.marks.mark(
                "checkpoint", step=place.step, epoch=place.epoch, seconds=seconds, bytes=size, failed=failed
            )

    def ending(self):
        told = {"bad_images": self.feed.bad()} if self.feed.bad() else {}
        return dict(told, **self.waiting.facts()) if self.opt.rank == 0 else told


def asked(opt, feed, place):
    """What this training is, for whoever reads its events."""
    told = {
        "recipe": opt.recipe.name,
        "target": opt.until,
        "epochs": opt.recipe.epochs,
        "steps_per_epoch": feed.steps_per_epoch,
        "training_images": feed.training_images,
        "validation_images": feed.validation_images,
        "loader": opt.loader,
        "dataset": feed.name,
        "dataset_checksum": feed.checksum,
        "seed": opt.seed,
        "departures": options.departures(opt),
    }
    return dict(told, resumed_step=place.step) if place.step else told


def kept_share(opt, step):
    """What an image keeps of itself under mixup, the same on every rank; 1 without."""
    if not opt.recipe.mixup:
        return 1.0
    return float(np.random.default_rng([opt.seed, step]).beta(opt.recipe.mixup, opt.recipe.mixup))


def process_started():
    """Seconds since 1970 at which this process began; None where the system does not say."""
    try:
        with open("/proc/self/stat") as file:
            ticks = int(file.read().rpartition(")")[2].split()[19])
        with open("/proc/uptime") as file:
            uptime = float(file.read().split()[0])
        return time.time() - uptime + ticks / os.sysconf("SC_CLK_TCK")
    except (OSError, ValueError):
        return None
