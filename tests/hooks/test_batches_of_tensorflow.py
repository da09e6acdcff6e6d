"""Which datasets of `tf.data` certainly make batches: only there are samples counted."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

pytest.importorskip("torch")


def chain(*names):
    """Datasets behind one another, the last named on the outside, by TensorFlow's names of their types."""
    dataset = SimpleNamespace()
    for name in names:
        dataset = type(name, (), {"_input_dataset": dataset})()
    return dataset


PAIR = (SimpleNamespace(shape=(8, 28, 28)), SimpleNamespace(shape=(8,)))


@pytest.mark.parametrize(
    ("names", "batch", "samples"),
    [
        (("_TensorSliceDataset", "_BatchDataset", "_PrefetchDataset"), PAIR, 8),
        (("_TensorSliceDataset", "_ParallelBatchDataset", "_MapDataset", "CacheDataset"), PAIR, 8),
        (("_TensorSliceDataset", "_ShuffleDataset"), PAIR[:1], None),
        (("_TensorSliceDataset", "_BatchDataset", "_UnbatchDataset"), PAIR, None),
        (("_TensorSliceDataset", "_BatchDataset"), (*PAIR, SimpleNamespace(shape=(3,))), None),
    ],
)
def test_samples_are_counted_behind_a_dataset_that_makes_batches(names, batch, samples):
    from trainmark.inside.hooks.keras_loops import _samples

    assert _samples(chain(*names), batch) == samples
