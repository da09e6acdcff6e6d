"""What the hooks of one framework saw in this process, as a stream of events beside the probe's.

A step carries `loads`: of each data loader that handed out batches since the step before, its number, the
batches, their samples (null where they cannot be counted), the seconds the program waited for them, and when
the first was asked for and the last had come. Which loader feeds the training is decided by whoever reads
the whole stream.
"""

import atexit
import contextlib
import os
import sys

from trainmark import probe
from trainmark.hooks.stopping import StopRule

EVENTS_FOLDER = probe.EVENTS_FOLDER


class Recorder:
    """One stream; its file is opened at the first step, by the process that trains.

    Several optimizers that take turns make one step together. It ends with the last of them before one of
    them comes round again, so a step is written down when the next one ends.
    """

    def __init__(self, source):
        self._source = source
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
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._forget)

    def load(self, loader, samples, asked, came):
        """Add a batch that a data loader handed out."""
        if self._first_load is None:
            self._first_load = asked
        number = self._numbers.setdefault(loader, len(self._numbers))
        _add(self._loads, [number, 1, samples, came - asked, asked, came])

    def step(self, optimizer, start, ready=None):
        """Note that an optimizer has stepped, by any name that tells it from others.

        `start()` gives the clock, rank, world size and facts when the first step ends; `ready` is what a
        clock of arrays waits for. Raises SystemExit once the harness has all the steps it asked for.
        """
        if self._stopped:
            self._stop.end_program()
        if self._closed:
            return
        try:
            self._note_step(optimizer, start, ready)
        except Exception as error:  # noqa: BLE001  whatever it is, the program goes on unwatched
            self._closed = True
            sys.stderr.write("trainmark: steps are no longer watched: {!r}\n".format(error))
        if self._stopped:
            self._stop.end_program()

    def _note_step(self, optimizer, start, ready):
        if self._run is None and not self._open(start):
            return
        if optimizer in self._turn:
            self._write()
            if self._stop.reached():
                self._stopped, self._mark = True, None
                self.close()
                return
        self._turn.add(optimizer)
        self._mark = self._clock.mark(ready)
        for row in self._loads.values():
            _add(self._mark_loads, row)
        self._loads = {}

    def pause(self, state):
        """Mark the begin or the end of an evaluation."""
        if self._run is not None and not self._closed:
            self._write()
            self._run.mark("eval", state=state)

    def close(self):
        """End the stream; at the end of the process at the latest."""
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
