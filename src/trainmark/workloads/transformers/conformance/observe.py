"""What a transformer's training shows of itself: five steps from given weights, every tensor as a sketch."""

from typing import Any, Dict, List

import numpy as np

from trainmark.workloads.common.sketch import difference, sketch
from trainmark.workloads.transformers.conformance import initial


def observe(opt, training, shapes, batches) -> Dict[str, Any]:
    """Take one step with each batch, then five steps that alternate between them, all from the same weights.

    `shapes` are those of every tensor by its canonical name, `batches` makes a rank's batches: see
    `decoder_batches` and `bert_batches`.
    """
    start = initial.weights(shapes)
    placed = {kind: training.place(*batch) for kind, batch in batches(shapes, opt.rank).items()}
    gradients = {}
    for kind in initial.KINDS:
        training.load(start)
        training.step(*placed[kind], rate=initial.RATES[0])
        gradients[kind] = first_gradients(training.momenta(), opt.recipe.beta1)
    training.load(start)
    loaded = training.tensors()
    reads = []
    for kind, rate in initial.schedule():
        reads.append(training.read(training.step(*placed[kind], rate=rate)))
    last = training.tensors()  # the device has passed every step: the losses can be read
    shown = summary(loaded, gradients, last, training.momenta(), [float(read()) for read in reads])
    return dict(shown, parameters=int(training.parameters()))


def first_gradients(momenta, beta1) -> Dict[str, np.ndarray]:
    """Return the clipped gradients, mean over the ranks, of the only step since the moments were zero."""
    prefix = "first/"
    return {
        name[len(prefix) :]: np.asarray(value, np.float64) / (1 - beta1)
        for name, value in momenta.items()
        if name.startswith(prefix)
    }


def summary(loaded, gradients, last, momenta, losses: List[float]) -> Dict[str, Any]:
    """Return plain numbers of tensors in float32 or float64."""
    return {
        "shapes": {name: list(value.shape) for name, value in loaded.items()},
        "losses": losses,
        "start": _sketches(loaded),
        "gradient_norms": {kind: _norms(tensors) for kind, tensors in gradients.items()},
        "gradients": {kind: _sketches(tensors) for kind, tensors in gradients.items()},
        "moments": _sketches(momenta),
        "moved": _sketches({name: difference(last[name], loaded[name]) for name in loaded}),
    }


def _sketches(tensors) -> Dict[str, List[float]]:
    return {name: sketch(name, value) for name, value in tensors.items()}


def _norms(tensors) -> Dict[str, float]:
    return {name: float(np.linalg.norm(value)) for name, value in tensors.items()}
