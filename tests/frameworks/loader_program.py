"""Runs in a framework's interpreter: what its own pipeline gives for the coordinate set, into a file.

`python loader_program.py NAME DATASET OUT EPOCHS`
"""

import importlib
import sys
from types import SimpleNamespace

import numpy as np
from coordinate_set import boxes

from trainmark.workloads.images import sampling

BATCH, SIZE = 16, 32


def options(**changes):
    given = {"batch": BATCH, "image_size": SIZE, "seed": 3, "workers": 2, "layout": "NCHW", "device": "cpu"}
    return SimpleNamespace(**{**given, "rank": 0, "local_rank": 0, "world_size": 1, **changes})


def as_array(tensor):
    for name in ("asnumpy", "numpy"):
        if hasattr(tensor, name):
            return getattr(tensor, name)()
    return np.asarray(tensor)


def pixels(images):
    """Normalised NCHW back to 0 to 255, NHWC."""
    return as_array(images).transpose(0, 2, 3, 1) * np.array(sampling.DEVIATION) + np.array(sampling.MEAN)


def labels_of(batches):
    return np.concatenate([as_array(labels).reshape(-1) for _, labels in batches]).astype(np.int64)


def main(name, dataset, out, epochs):
    own = importlib.import_module(f"trainmark.workloads.images.own.{name.split('-')[0]}")
    opt = options(dataset=dataset, loader=name)
    images = own.Images(opt)
    crops, labels, first = [], [], None
    for epoch in range(epochs):
        epoch_labels = []
        for batch, label in images.training(epoch):
            assert tuple(batch.shape) == (BATCH, 3, SIZE, SIZE), batch.shape
            given = pixels(batch)
            first = given if first is None else first
            crops.append(boxes(given))
            epoch_labels.append(as_array(label).reshape(-1).copy())
        labels.append(np.concatenate(epoch_labels))
    again = next(iter(own.Images(opt).training(0)))
    resumed = labels_of(own.Images(opt).training(0, 3))
    evaluation, evaluated = [], []
    for batch, label in images.evaluation():
        evaluation.append(boxes(pixels(batch)))
        evaluated.append(as_array(label).reshape(-1).copy())
    ranks = []
    if name != "oneflow":  # it asks its own environment which rank it is
        for rank in range(2):
            both = own.Images(options(dataset=dataset, loader=name, rank=rank, world_size=2))
            ranks.append((labels_of(both.training(0)), labels_of(both.evaluation())))
    np.savez(
        out,
        boxes=np.concatenate(crops),
        labels=np.stack(labels),
        repeated=np.abs(pixels(again[0]) - first).max(),
        repeatable=own.Images.repeatable,
        resumed=resumed,
        evaluation=np.concatenate(evaluation),
        evaluated=np.concatenate(evaluated),
        rank_training=np.array([each[0] for each in ranks]),
        rank_evaluated=np.array([each[1] for each in ranks]),
    )


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4]))
