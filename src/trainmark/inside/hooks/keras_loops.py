"""Steps of loops that apply gradients with a Keras optimizer themselves, outside of `fit`.

Run eagerly, each application is a step. On TensorFlow so is each call, from outside, of a `tf.function` whose
tracing applies gradients; the batches of a `tf.data.Dataset` tell its samples.
"""

import functools
import sys
import threading
import time

from trainmark.inside.hooks import keras

SOURCE = "Keras optimizers outside of fit"
RUNNING = threading.local()
OUTERMOST = []  # also where the replicas of a strategy trace in threads of their own
# Of tf.data: what makes batches, and what hands on the batches of the dataset behind it one by one.
BATCHING = {"_BatchDataset", "_ParallelBatchDataset", "_PaddedBatchDataset"}
KEEPING = {"Prefetch", "Options", "Shuffle", "Repeat", "Take", "Skip", "Cache", "Map", "ParallelMap"}


def watch_optimizers(module):
    """Wrap `BaseOptimizer.apply`, which `apply_gradients` calls too."""
    apply = module.BaseOptimizer.apply

    @functools.wraps(apply)
    def applied(self, *args, **kwargs):
        result = apply(self, *args, **kwargs)
        if not keras.FITTING:
            _applied(id(self))
        return result

    module.BaseOptimizer.apply = applied


def _applied(optimizer):
    backend = sys.modules["keras"].config.backend()
    if backend == "torch":  # its data loaders are PyTorch's
        from trainmark.inside.hooks import pytorch

        pytorch.RECORDER.step(optimizer, lambda: _with_source(pytorch._start()))
    elif backend == "tensorflow":
        function = getattr(RUNNING, "function", None)
        if function is None and not sys.modules["tensorflow"].executing_eagerly():
            function = OUTERMOST[-1] if OUTERMOST else None
        if function is not None:
            function._trainmark_trains = True
        elif sys.modules["tensorflow"].executing_eagerly():
            keras.RECORDER.step(optimizer, _start)


def watch_functions(module):
    """Wrap the call of a `tf.function`."""
    call = module.Function.__call__

    @functools.wraps(call)
    def called(self, *args, **kwargs):
        if getattr(RUNNING, "function", None) is not None:
            return call(self, *args, **kwargs)
        RUNNING.function = self
        OUTERMOST.append(self)
        try:
            result = call(self, *args, **kwargs)
        finally:
            RUNNING.function = None
            OUTERMOST.remove(self)
        if getattr(self, "_trainmark_trains", False) and not keras.FITTING:
            keras.RECORDER.step(id(self), _start)
        return result

    module.Function.__call__ = called


def watch_batches(module):
    """Wrap the iterator over a `tf.data.Dataset`."""
    following = module.OwnedIterator.__next__

    @functools.wraps(following)
    def timed(self):
        asked = time.monotonic()
        batch = following(self)
        if not keras.FITTING and sys.modules["tensorflow"].executing_eagerly():
            dataset = getattr(self, "_dataset", None)
            keras.RECORDER.load(id(dataset), _samples(dataset, batch), asked, time.monotonic())
        return batch

    module.OwnedIterator.__next__ = timed


def _samples(dataset, batch):
    """Count the samples of a batch; None where the dataset does not certainly make batches."""
    from trainmark.inside.hooks.pytorch import _collect_lengths

    while type(dataset).__name__ not in BATCHING:
        if type(dataset).__name__.lstrip("_")[: -len("Dataset")] not in KEEPING:
            return None
        dataset = dataset._input_dataset
    lengths = set()
    _collect_lengths(batch, lengths)
    return lengths.pop() if len(lengths) == 1 else None


def _with_source(started):
    clock, rank, world_size, facts = started
    return clock, rank, world_size, dict(facts, source=SOURCE + " (torch backend)")


def _start():
    return keras.start(SOURCE, "counted in the batches of tf.data")
