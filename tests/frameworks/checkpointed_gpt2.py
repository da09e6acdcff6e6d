"""A miniature GPT-2 trained in the framework that is named; prints what its tests look at as JSON."""

import importlib
import json
import sys

import numpy as np

from trainmark.workloads.gpt2.shared import program

RATE = 1e-3
OPTIONS = ["--size", "mini", "--length", "16", "--batch", "2"]

gpt2 = importlib.import_module("trainmark.workloads.gpt2." + sys.argv[1])
transformer = importlib.import_module("trainmark.workloads.transformers.frameworks." + sys.argv[1])


def losses(batch, steps):
    return [trained.read(trained.step(*batch, rate=RATE))() for _ in range(steps)]


def padded_evaluation(arrays):
    """Return the evaluation of a batch whose second sequence is padding."""
    tokens, targets = arrays
    targets = targets.copy()
    targets[1] = -1
    return np.asarray(trained.evaluate(*trained.place(tokens, targets))()).tolist()


trained = transformer.Training(program.SPEC.parse(OPTIONS, "gpt2"), build=gpt2.build)
arrays = trained.synthetic(trained.opt, 1)[0]
batch = trained.place(*arrays)
before = losses(batch, 2)
checkpoint = trained.tensors(), trained.momenta(), trained.rest()
straight = losses(batch, 2)
trained.load(*checkpoint)
shown = {
    "before": before,
    "straight": straight,
    "resumed": losses(batch, 2),
    "padded": padded_evaluation(arrays),
    "features": trained.start_facts()["features"],
}
trained.close()
print(json.dumps(shown))
