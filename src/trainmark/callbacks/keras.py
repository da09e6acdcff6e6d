"""Keras 3: `model.fit(..., batch_size=32, callbacks=[TrainmarkCallback(batch_size=32)])`."""

import threading
from collections import deque

import keras

from trainmark import probe


class ArrivalClock(probe.HostClock):
    """Steps that are over when Keras has their logs, which a thread of its own waits for."""

    def __init__(self, name):
        self.name = name

    def mark(self, ready=None):
        return ready


class TrainmarkCallback(keras.callbacks.Callback):
    """Records the first `fit` of this process; Keras does not tell a callback its `batch_size`.

    With `epoch_samples`, the samples of an epoch, a smaller last batch counts as what it is. The loss is that
    of Keras's logs, a mean since the epoch began. With `steps_per_execution`, such an execution is one step.
    """

    # Called from threads that wait for the logs. Without this Keras would wait for each step in its loop.
    async_safe = True

    def __init__(self, batch_size, epoch_samples=None, unit="samples", **facts):
        super().__init__()
        self._batch_size = batch_size
        self._epoch_samples = epoch_samples
        self._unit = unit
        self._facts = facts
        self._run = None
        self._epoch = 0
        self._backend = keras.backend.backend()
        self._lock = threading.Lock()
        self._begun = deque()
        self._arrived = {}

    def on_train_begin(self, logs=None):
        clocks = {"torch": "cuda", "jax": ArrivalClock("jax"), "tensorflow": ArrivalClock("loss")}
        if self._run is None:
            self._run = probe.start(
                unit=self._unit,
                clock=clocks.get(self._backend),
                source="keras callback",
                framework={"torch": "pytorch"}.get(self._backend, self._backend),
                **self._facts,
            )

    def on_epoch_begin(self, epoch, logs=None):
        self._epoch = epoch
        self._run.mark("epoch", epoch=epoch, state="begin")

    def on_train_batch_begin(self, batch, logs=None):
        self._end_torch_step()
        with self._lock:
            self._begun.append(batch)

    def on_train_batch_end(self, batch, logs=None):
        """Threads may come out of order; steps are recorded in it."""
        arrival = probe.now()
        if self._backend == "torch":
            return
        with self._lock:
            self._arrived[batch] = arrival, (logs or {}).get("loss")
            while self._begun and self._arrived:
                last = min(self._arrived)
                if len(self._begun) > 1 and last >= self._begun[1]:
                    return  # the thread of the step before has not come
                ready, loss = self._arrived.pop(last)
                begin = self._begun.popleft()
                self._run.step(self._samples(begin, last + 1 - begin), ready=ready, loss=loss)

    def _end_torch_step(self):
        """Record the step before, which ends on the device where the next one is queued."""
        if self._backend == "torch" and self._begun:
            self._run.step(self._samples(self._begun.popleft(), 1))

    def _samples(self, begin, batches):
        """Samples of so many batches of an epoch from that one on."""
        whole = batches * self._batch_size
        if self._epoch_samples is None:
            return whole
        return min(whole, self._epoch_samples - begin * self._batch_size)

    def on_test_begin(self, logs=None):
        self._end_torch_step()

    def on_test_end(self, logs=None):
        if self._run is not None:
            with self._lock:
                self._run.mark("eval", epoch=self._epoch, state="end")

    def on_epoch_end(self, epoch, logs=None):
        self._end_torch_step()
        self._run.mark("epoch", epoch=epoch, state="end")

    def on_train_end(self, logs=None):
        self._run.end()
