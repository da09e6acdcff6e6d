"""Steps of Keras 3's `fit`, on any backend, by the calls that it makes to its list of callbacks."""

import functools
import sys
from importlib import import_module

from trainmark import probe
from trainmark.inside.hooks.recorder import Recorder, host_start

PROFILERS = {"torch": "pytorch", "jax": "jax", "tensorflow": "tensorflow"}  # of Keras' backends


def _profiler():
    name = PROFILERS.get(sys.modules["keras"].config.backend())
    return import_module("trainmark.inside.profiler." + name).Profiler() if name else None


RECORDER = Recorder("keras", _profiler)
FITTING = []  # whether a `fit` runs
ITERATORS = []  # the newest EpochIterator; `fit` makes its own just before training begins


class EpochBatches:
    """The batches of the running epoch, counted by what the data adapter says of them."""

    def __init__(self, iterator):
        self._adapter = iterator.data_adapter
        self._batches_per_step = iterator.steps_per_execution
        self._batches = 0

    def begin(self):
        self._batches = 0

    def samples(self):
        """Count the samples of the step that just ended; None where the adapter does not know."""
        size, batches = self._adapter.batch_size, self._adapter.num_batches
        if size is None:
            return None
        before, self._batches = self._batches, self._batches + self._batches_per_step
        if batches is None or self._batches < batches:
            return self._batches_per_step * size
        last = self._adapter.partial_batch_size or size
        return (batches - 1 - before) * size + last


def watch_epochs(module):
    """Wrap `EpochIterator.__init__`, to know the data that `fit` trains on."""
    init = module.EpochIterator.__init__

    @functools.wraps(init)
    def remembered(self, *args, **kwargs):
        init(self, *args, **kwargs)
        ITERATORS[:] = [self]

    module.EpochIterator.__init__ = remembered


def watch_callbacks(module):
    """Wrap the methods of `CallbackList` that frame training, its steps and the evaluations within."""

    def after(method):
        return lambda function: _wrap(module.CallbackList, method, function)

    @after("on_train_begin")
    def train_begin(callbacks):
        callbacks._trainmark_epoch = EpochBatches(ITERATORS[0]) if ITERATORS else None
        FITTING[:] = [True]

    @after("on_train_end")
    def train_end(callbacks):
        FITTING.clear()

    @after("on_epoch_begin")
    def epoch_begin(callbacks):
        if _epoch(callbacks) is not None:
            _epoch(callbacks).begin()

    @after("on_train_batch_end")
    def train_batch_end(callbacks):
        now = probe.now()
        RECORDER.load("fit", _epoch(callbacks).samples() if _epoch(callbacks) is not None else None, now, now)
        RECORDER.step("fit", _start)

    @after("on_test_begin")
    def test_begin(callbacks):
        if _epoch(callbacks) is not None:
            RECORDER.evaluates("fit")

    @after("on_test_end")
    def test_end(callbacks):
        if _epoch(callbacks) is not None:
            RECORDER.trains("fit")


def _epoch(callbacks):
    """None outside `fit`: `evaluate` and `predict` have lists of their own."""
    return getattr(callbacks, "_trainmark_epoch", None)


def _wrap(owner, method, function):
    original = getattr(owner, method)

    @functools.wraps(original)
    def wrapper(self, *args, **kwargs):
        result = original(self, *args, **kwargs)
        function(self)
        return result

    setattr(owner, method, wrapper)


def _start():
    return start("Keras fit", "counted in the batches of Keras fit")


def start(source, samples):
    """What a stream begins with; `samples` says what they are counted in, where they can be."""
    keras = sys.modules["keras"]
    facts = {
        "source": "{} ({} backend)".format(source, keras.config.backend()),
        "samples": samples,
        "framework": "keras",
        "framework_version": str(keras.__version__),
    }
    return host_start(facts)
