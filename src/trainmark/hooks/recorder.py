"""What the hooks of one framework saw in this process, as a stream of events beside the probe's.

A step carries `loads`: of each data loader that handed out batches since the step before, its number, the
batches, their samples (null where they cannot be counted), the seconds the program waited for them, and when
the first was asked for and the last had come. Which loader feeds the training is decided by whoever reads
the whole stream.
"""

import atexit
import contextlib
import os
import statistics
import sys

from trainmark import probe
from trainmark.hooks.stopping import StopRule
from trainmark.profiler import capture

EVENTS_FOLDER = probe.EVENTS_FOLDER
UNPROFILED = contextlib.nullcontext()


class Recorder:
    """One stream; its file is opened at the first step, by the process that trains.

    Several optimizers that take turns make one step together. It ends with the last of them before one of
    them comes round again, so a step is written down when the next one ends.

    `profiler()` gives the framework's backend of `trainmark.profiler.capture`. Where a profile is requested,
    its steps follow once the stream has ended, and the program ends after them.
    """

    def __init__(self, source, profiler):
        self._source = source
        self._profiler = profiler
        self._run = None
        self._clock = None
        self._closed = False
        self._stopped = False
        self._loads = {}
        self._numbers = {}
        self._first_load = None
        self._turn = set()
        self._mark = None
        self._mark_loads = {}
        self._stop = StopRule()
        self._capture = None
        self._profiled_samples = []
        self._queued_batches = 0
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._forget)

    def load(self, loader, samples, asked, came):
        """Add a batch that a data loader handed out."""
        if self._first_load is None:
            self._first_load = asked
        number = self._numbers.setdefault(loader, len(self._numbers))
        _add(self._loads, [number, 1, samples, came - asked, asked, came])

    def fetching(self):
        """Return a context for a loader's work on a batch, to be seen in a profile."""
        return self._capture.data() if self._capture is not None else UNPROFILED

    def queue(self, batches):
        """Know how many batches a loader makes ahead."""
        self._queued_batches = max(self._queued_batches, batches)

    def step(self, optimizer, start, ready=None):
        """Note that an optimizer has stepped, by any name that tells it from others.

        `start()` gives the clock, rank, world size and facts when the first step ends; `ready` is what a
        clock of arrays waits for. Raises SystemExit once the harness has all the steps it asked for.
        """
        if self._stopped:
            self._stop.end_program()
        if self._closed and self._capture is None:
            return
        try:
            note = self._note_step if self._capture is None else self._note_profiled_step
            note(optimizer, start, ready)
        except Exception as error:  # noqa: BLE001  whatever it is, the program goes on unwatched
            self._closed, self._stopped = True, self._capture is not None
            sys.stderr.write("trainmark: steps are no longer watched: {!r}\n".format(error))
        if self._stopped:
            self._stop.end_program()

    def _note_step(self, optimizer, start, ready):
        if self._run is None and not self._open(start):
            return
        if optimizer in self._turn:
            self._write()
            if self._stop.reached():
                self._mark = None
                self._end_record()
                self._stopped = not (capture.is_requested() and self._begin_capture())
                self._turn, self._loads = {optimizer}, {}
                return
        self._turn.add(optimizer)
        self._mark = self._clock.mark(ready)
        for row in self._loads.values():
            _add(self._mark_loads, row)
        self._loads = {}

    def _note_profiled_step(self, optimizer, start, ready):
        """Count a step of the profile, which ends when the first of its optimizers comes round again."""
        if optimizer in self._turn:
            self._turn.clear()
            rows, self._loads = list(self._loads.values()), {}
            if len(rows) == 1 and rows[0][2] is not None:
                self._profiled_samples.append(rows[0][2])
                self._capture.samples_per_step = statistics.median_low(self._profiled_samples)
            self._stopped = not self._capture.step_ended(ready)
        self._turn.add(optimizer)

    def _begin_capture(self):
        """Take the steps that follow for a profile; returns whether there are any."""
        settling = self._queued_batches + capture.SETTLING_STEPS
        self._capture = capture.Capture(self._profiler, self._clock, self._rank, self._world_size, settling)
        self._capture.begin()
        return self._capture.running

    def pause(self, state):
        """Mark the begin or the end of an evaluation."""
        if self._run is not None and not self._closed:
            self._write()
            self._run.mark("eval", state=state)

    def close(self):
        """End the stream, and the profile; at the end of the process at the latest."""
        self._end_record()
        if self._run is not None and capture.is_requested():
            with contextlib.suppress(Exception):
                if self._capture is None:
                    self._begin_capture()
                self._capture.close()

    def _end_record(self):
        if self._run is not None and not self._closed:
            self._closed = True
            with contextlib.suppress(Exception):
                self._write()
                self._run.end()

    def _write(self):
        """Hand the last step to the stream, which waits for the device to pass it."""
        if self._mark is not None:
            self._run.step_at(self._mark, None, loads=list(self._mark_loads.values()) or None)
        self._turn.clear()
        self._mark, self._mark_loads = None, {}

    def _open(self, start):
        self._clock, rank, world_size, facts = start()
        self._rank, self._world_size = rank, world_size
        name = "observed-{}-rank{}.jsonl".format(self._source, rank)
        try:
            file = open(os.path.join(os.environ[EVENTS_FOLDER], name), "xb", buffering=0)
        except OSError:  # another process of the program trains as this rank already
            self._closed = True
            return False
        self._run = probe.Run(file, rank, self._clock)
        self._run._emit(
            "run_start", self._first_load, world_size=world_size, unit="samples", scope="rank", facts=facts
        )
        self._run.flush()
        self._stop.begin(rank)
        atexit.register(self.close)
        return True

    def _forget(self):
        """Leave the parent's stream alone in a forked child, such as a worker of a data loader.

        Where the parent has not trained, the child may.
        """
        self._closed, self._stopped = self._closed or self._run is not None, False
        self._run = self._capture = None


def _add(rows, row):
    """Add a row of `loads` to that of the same loader."""
    earlier = rows.get(row[0])
    if earlier is None:
        rows[row[0]] = list(row)
        return
    earlier[1] += row[1]
    earlier[2] = None if earlier[2] is None or row[2] is None else earlier[2] + row[2]
    earlier[3] += row[3]
    earlier[5] = row[5]


def host_start(facts):
    """The host's clock, and rank and world size by the usual variables."""
    rank, world_size = int(os.environ.get("RANK", "0")), int(os.environ.get("WORLD_SIZE", "1"))
    return probe.HostClock(), rank, world_size, dict(facts, clock="host")
