"""A miniature GPT-2 trained in the framework that is named; prints what its tests look at as JSON."""

import importlib
import json
import sys

import numpy as np

from trainmark.workloads.gpt2.shared import program

RATE = 1e-3
OPTIONS = ["--size", "mini", "--length", "16", "--batch", "2"]
TOO_LARGE = 2.0**120  # a loss scale at which float16 overflows

gpt2 = importlib.import_module("trainmark.workloads.gpt2." + sys.argv[1])


def training(*options):
    opt = program.SPEC.parse([*OPTIONS, *options], "gpt2")
    return gpt2.transformer.Training(opt, build=gpt2.build)


def losses(trained, batch, steps):
    return [float(trained.read(trained.step(*batch, rate=RATE))()) for _ in range(steps)]


def resumed():
    """Return the losses before a checkpoint, after it, and of a training that goes on from it."""
    trained = training()
    batch = next(trained.batches())
    before = losses(trained, batch, 2)
    checkpoint = trained.tensors(), trained.momenta(), trained.rest()
    straight = losses(trained, batch, 2)
    other = training("--seed", "1")
    other.load(*checkpoint)
    return before, straight, losses(other, batch, 2), padded(trained)


def padded(trained):
    """Return the evaluation of a batch whose second sequence is padding, and of its first sequence alone."""
    tokens, targets = trained.synthetic(trained.opt, 1)[0]
    targets[1] = -1
    both = trained.evaluate(*trained.place(tokens, targets))()
    return both.tolist(), trained.evaluate(*trained.place(tokens[:1], targets[:1]))().tolist()


def overflow():
    """Return the rest of the state, and whether weights moved, after a step that overflows, and one more."""
    trained = training("--precision", "amp")
    batch = next(trained.batches())
    start = trained.tensors()
    trained.load(start, rest={"scale": TOO_LARGE})
    losses(trained, batch, 1)
    rest, same = trained.rest(), all(np.array_equal(trained.tensors()[name], start[name]) for name in start)
    trained.load(start)
    losses(trained, batch, 1)
    return rest, same, trained.rest()


shown = {"resumed": resumed()}
if "amp" in sys.argv:
    shown["overflow"] = overflow()
print(json.dumps(shown))
