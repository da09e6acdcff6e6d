"""A miniature GPT-2 trained in JAX; prints what its tests look at as JSON."""

import json

import numpy as np

from trainmark.workloads.gpt2 import jax as gpt2
from trainmark.workloads.gpt2.shared import program
from trainmark.workloads.transformers.frameworks import jax as transformer

RATE = 1e-3
OPTIONS = ["--size", "mini", "--length", "16", "--batch", "2"]
TOO_LARGE = 2.0**120  # a loss scale at which float16 overflows


def training(*options):
    return transformer.Training(program.SPEC.parse([*OPTIONS, *options], "gpt2"), build=gpt2.build)


def losses(trained, batch, steps):
    return [trained.read(trained.step(*batch, rate=RATE))() for _ in range(steps)]


def resumed():
    """Return the losses of two steps after a checkpoint, and of the same steps resumed from it."""
    trained = training()
    batch = next(trained.batches())
    before = losses(trained, batch, 2)
    checkpoint = trained.tensors(), trained.momenta(), trained.rest()
    straight = losses(trained, batch, 2)
    trained.load(*checkpoint)
    again = losses(trained, batch, 2)
    return before, straight, again, padded(trained, batch)


def padded(trained, batch):
    """Return the evaluation of a batch whose second sequence is padding."""
    tokens, targets = (np.array(part) for part in batch)
    targets[1] = -1
    return trained.evaluate(*trained.place(tokens, targets))().tolist()


def scanned():
    """Return the first losses where XLA loops over the layers."""
    layers, transformer.SCANNED_LAYERS = transformer.SCANNED_LAYERS, 1
    trained = training()
    shown = losses(trained, next(trained.batches()), 2)
    transformer.SCANNED_LAYERS = layers
    return shown


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


shown = {"resumed": resumed(), "scanned": scanned(), "overflow": overflow()}
print(json.dumps(shown))
