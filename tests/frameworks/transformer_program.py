"""A miniature GPT-2 trained in the framework that is named; prints what its tests look at as JSON."""

import importlib
import json
import sys

import numpy as np

from trainmark.workloads.gpt2.shared import SPEC
from trainmark.workloads.transformers.training import decoder_batches

RATE = 1e-3
OPTIONS = ["--size", "mini", "--length", "16", "--batch", "2"]
TOO_LARGE = 2.0**120  # a loss scale at which float16 overflows
PADDING = -1

gpt2 = importlib.import_module("trainmark.workloads.gpt2." + sys.argv[1])
transformer = importlib.import_module("trainmark.workloads.transformers.frameworks." + sys.argv[1])


def training(*options):
    return transformer.Training(SPEC.parse(OPTIONS + list(options), "gpt2"), build=gpt2.build)


def losses(trained, batch, steps):
    return [float(trained.read(trained.step(*batch, rate=RATE))()) for _ in range(steps)]


def resumed(trained):
    """Return the losses before a checkpoint, after it, and after going back to it."""
    batch = trained.place(*decoder_batches(trained.opt, 1)[0])
    before = losses(trained, batch, 2)
    checkpoint = trained.tensors(), trained.momenta(), trained.rest()
    straight = losses(trained, batch, 2)
    trained.load(*checkpoint)
    return {"before": before, "straight": straight, "resumed": losses(trained, batch, 2)}


def evaluated(trained):
    """Return the evaluations of two sequences, and of either where the other is padding."""
    tokens, targets = decoder_batches(trained.opt, 1)[0]
    padded = [targets, targets.copy(), targets.copy()]
    padded[1][1], padded[2][0] = PADDING, PADDING
    return [np.asarray(trained.evaluate(*trained.place(tokens, part))()).tolist() for part in padded]


def first_losses():
    """Return the losses of a new training."""
    trained = training()
    return losses(trained, trained.place(*decoder_batches(trained.opt, 1)[0]), 2)


def overflow(*options):
    """Return the rest of the state, and whether weights moved, after a step that overflows, and one more."""
    trained = training("--precision", "amp", *options)
    batch = trained.place(*decoder_batches(trained.opt, 1)[0])
    start = trained.tensors()
    trained.load(start, rest={"scale": TOO_LARGE})
    losses(trained, batch, 1)
    rest, last = trained.rest(), trained.tensors()
    trained.load(start)
    losses(trained, batch, 1)
    moved = [name for name in start if not np.array_equal(last[name], start[name])]
    return {"rest": rest, "moved": moved, "rest_of_good_step": trained.rest()}


def main(framework):
    trained = training()
    shown = {"losses": resumed(trained), "evaluations": evaluated(trained)}
    shown["features"] = trained.start_facts()["features"]
    if framework == "jax":
        transformer.SCANNED_LAYERS = 1  # XLA loops over the layers from here on
        shown["scanned"] = first_losses()
    if framework in ("jax", "pytorch"):
        shown["overflow"] = overflow()
    if framework == "tensorflow":
        shown["overflow"] = overflow("--engine", "plain")  # eager: nothing more to compile
    trained.close()
    return shown


print(json.dumps(main(sys.argv[1])))
