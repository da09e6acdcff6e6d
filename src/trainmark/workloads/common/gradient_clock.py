"""How long a rank computes in a step, and how long it then does nothing but wait for the others' gradients.

Data-parallel training reduces the gradients bucket by bucket while the backward pass still runs. What is left
of that when the last gradient has been computed is time in which the rank only waits: its exposed
communication. The reduction itself is left alone, for a hook in it would have to average the gradients in a
pass of its own; only the moments are noted at which the gradients come.
"""

import functools
import statistics
import time
import weakref
from collections import deque

LAST_STEPS = 50  # over which the times of the buckets are taken
STEPS_TO_TELL = 10  # DistributedDataParallel forms its buckets anew after the first step, and then tells them


class HostMarks:
    """For a device that has done its work when the call returns."""

    mark = staticmethod(time.monotonic)

    @staticmethod
    def between(first, second):
        return second - first


class EventMarks:
    """By the framework's events: recorded in the stream, read once the device has passed the step."""

    def __init__(self, event):
        self._event = event

    def mark(self):
        event = self._event()
        event.record()
        return event

    @staticmethod
    def between(first, second):
        return first.elapsed_time(second) / 1e3


class Untimed:
    """One rank waits for nobody, and not every framework lets itself be watched."""

    def begin(self):
        """The step's batch is there."""

    def times(self):
        """`compute` and `communication` of the step that ends here, as functions for the probe."""
        return {}

    def facts(self):
        """What the last steps had in common."""
        return {}

    def __enter__(self):
        """The backward pass begins; when the block is left, all gradients are reduced."""

    def __exit__(self, *error):
        return None


class _Moments:
    """The marks of one step; `came` holds those of its gradients in the order in which they came."""

    def __init__(self, begin):
        self.begin = begin
        self.backward = self.reduced = self.end = None
        self.came = {}


class GradientClock(Untimed):
    """Watches a PyTorch module in DistributedDataParallel."""

    def __init__(self, module, marks):
        # Its parameters hold this clock by their hooks: a cycle that only one weak end lets go.
        self._module = weakref.ref(module)
        self._marks = marks
        self._parameters = [parameter for parameter in module.parameters() if parameter.requires_grad]
        self._hooks = {
            index: parameter.register_post_accumulate_grad_hook(functools.partial(self._note, index))
            for index, parameter in enumerate(self._parameters)
        }
        self._buckets = []
        self._closing = set()
        self._steps = 0
        self._last = deque(maxlen=LAST_STEPS)
        self._now = _Moments(None)

    def begin(self):
        if 0 < self._steps <= STEPS_TO_TELL and not self._buckets:
            self._buckets = reported_buckets(self._module())
            if self._buckets or self._steps == STEPS_TO_TELL:
                self._watch_less()
        self._steps += 1
        self._now = _Moments(self._marks.mark())

    def __enter__(self):
        self._now.backward = self._marks.mark()

    def __exit__(self, *error):
        self._now.reduced = self._marks.mark()

    def times(self):
        step = self._now
        step.end = self._marks.mark()
        return {
            "compute": functools.partial(self._compute, step),
            "communication": functools.partial(self._communication, step),
        }

    def facts(self):
        if not self._last:
            return {}
        forward, backward, ready = zip(*self._last)
        return {
            "forward_seconds": statistics.median(forward),
            "backward_seconds": statistics.median(backward),
            "gradient_buckets": [self._bucket(bucket, ready) for bucket in self._buckets],
        }

    def _bucket(self, bucket, ready):
        """Its size, and when its last gradient came after the start of the backward pass."""
        closing = next(index for index in bucket if index in self._closing)
        return {
            "bytes": sum(self._parameters[i].numel() * self._parameters[i].element_size() for i in bucket),
            "ready_seconds": statistics.median(seconds[closing] for seconds in ready),
        }

    def _note(self, index, parameter):
        self._now.came[index] = self._marks.mark()

    def _watch_less(self):
        """From here on the last gradient of each bucket is enough, and the last of all."""
        order = list(self._now.came)
        self._closing = {max(bucket, key=order.index) for bucket in self._buckets}
        for index in set(self._hooks) - self._closing - {order[-1]}:
            self._hooks.pop(index).remove()
        self._last.clear()

    def _compute(self, step):
        between = self._marks.between
        return between(step.begin, _last_gradient(step)) + between(step.reduced, step.end)

    def _communication(self, step):
        between, last = self._marks.between, _last_gradient(step)
        if self._closing.issubset(step.came):
            ready = {index: between(step.backward, mark) for index, mark in step.came.items()}
            self._last.append((between(step.begin, step.backward), between(step.backward, last), ready))
        return between(last, step.reduced)


def _last_gradient(step):
    return list(step.came.values())[-1]


def reported_buckets(module):
    """Return the numbers of each bucket's parameters, in the order of reduction; none while not yet known."""
    buckets = module._get_ddp_logging_data().get("rebuilt_per_bucket_param_indices", "")
    return [list(map(int, bucket.split())) for bucket in buckets.split(",") if bucket.strip()]
