"""Clocks for the probe, for devices that run behind the host; see `trainmark.probe.HostClock`."""

import time
from concurrent.futures import ThreadPoolExecutor


class EventClock:
    """Step boundaries from the framework's own events: recorded in the stream, read once the device is past.

    `event` makes one that can tell times; PyTorch's and Paddle's have the same methods.
    """

    def __init__(self, event):
        self._event = event
        self._last = self.mark()
        self._last.synchronize()
        self._seconds = time.monotonic()

    def mark(self):
        event = self._event()
        event.record()
        return event

    def seconds(self, mark, wait):
        if wait:
            mark.synchronize()
        elif not mark.query():
            return None
        # From event to event: an elapsed time is a float32 and would blur over a long run.
        self._seconds += self._last.elapsed_time(mark) / 1e3
        self._last = mark
        return self._seconds


class LossClock:
    """Step boundaries from the losses, where there are no events: threads wait for them, not the training.

    `value(loss)` waits for a loss and gives it as a number. A loss may come before the backward pass of its
    step: from loss to loss is one step all the same.
    """

    def __init__(self, value, waiters=1):
        self._value = value
        self._waiters = ThreadPoolExecutor(waiters)
        self._last = None

    def read(self, loss):
        """What the loop asks for before it marks the step."""
        self._last = self._waiters.submit(lambda: (self._value(loss), time.monotonic()))
        return lambda arrival=self._last: arrival.result()[0]

    def mark(self):
        return self._last

    def seconds(self, mark, wait):
        return mark.result()[1] if wait or mark.done() else None

    def close(self):
        self._waiters.shutdown()
