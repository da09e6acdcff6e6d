"""What the hooks of one framework saw in this process, as a stream of events beside the probe's.

A line of the stream is a turn of the optimizers; `turn` has their numbers, where there are several. `loads`
are the batches since the line before: the number of the data loader, the batches, their samples (null where
they cannot be counted), the seconds waited for them, when the first was asked for and the last had
come, the number of the pass over the loader, and what became of them: TRAINED, EVALUATED or unknown. `pauses`
have a kind, a begin and an end. What feeds the training and what is one step is decided by whoever reads the
whole stream.
"""

import atexit
import contextlib
import functools
import os
import statistics
import sys
from threading import enumerate as running_threads
from threading import get_ident

from trainmark import probe
from trainmark.inside.hooks.stop_rule import StopRule
from trainmark.inside.profiler import capture

EVENTS_FOLDER = probe.EVENTS_FOLDER
UNPROFILED = contextlib.nullcontext()
# A backward pass followed a batch before the next one came; or gradients were off when it was asked for, and
# none did.
TRAINED, EVALUATED = "trained", "evaluated"
EVALUATION, CHECKPOINT = "evaluation", "checkpoint"
# Turns after which an optimizer that is rarer than another still ends one step with it, as in a WGAN.
LONGEST_ROUND = 8


class Recorder:
    """One stream; its file is opened at the first step, by the process and thread that train.

    Several optimizers that take turns make one step together. It ends with the last of them before one of
    them comes round again, so a turn is written down when the next one begins. An optimizer that was never
    seen has a turn of its own: it may be the next of several trainings.

    `profiler()` gives the framework's backend of `inside.profiler.capture`. Where a profile is requested, its
    steps follow once the stream has ended, and the program ends after them.
    """

    def __init__(self, source, profiler):
        self._source = source
        self._profiler = profiler
        self._run = None
        self._clock = None
        self._thread = None
        self._rank = 0
        self._closed = False
        self._stopped = False
        self._bystander = False
        self.facts = {}  # told at the end of the record
        self._loads = {}
        self._batch = None
        self._numbers = {}
        self._first_load = None
        self._optimizers = {}
        self._turn = []
        self._alone = False
        self._turns = 0
        self._gaps = {}
        self._mark = None
        self._mark_loads = {}
        self._evaluations = {}
        self._pauses = []
        self._mark_pauses = []
        self._stop = StopRule()
        self._capture = None
        self._profiled_samples = []
        self._queued_batches = 0
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._forget)

    def load(self, loader, samples, asked, came, loader_pass=None, gradients=True):
        """Add a batch that a data loader handed out; whether gradients were on when it was asked for."""
        if self._closed and self._capture is None:
            return
        if self._first_load is None:
            self._first_load = asked
        number = self._numbers.setdefault(loader, len(self._numbers))
        self._settle_batch()
        use = None if gradients else EVALUATED
        self._batch = [number, 1, samples, came - asked, asked, came, loader_pass, use]

    def exhausted(self, loader_pass):
        """Know that the program is through with the last batch of a pass."""
        now = probe.now()
        for row in [*self._loads.values(), self._batch]:
            if row is not None and row[6] == loader_pass:
                row[5] = now

    def backward(self):
        """Know that a backward pass begins: the batch that came last is trained on, nothing is evaluated."""
        if self._batch is not None:
            self._batch[7] = TRAINED
            self._settle_batch()
        if self._evaluations:
            self._evaluations.clear()

    def evaluates(self, module):
        """Know that a module was put into its evaluation mode, by a name that tells it from others."""
        if get_ident() == self._thread:
            self._evaluations.setdefault(module, probe.now())

    def trains(self, module):
        """Know that it was put back: without a backward pass in between, that was an evaluation."""
        if module in self._evaluations:
            self.paused(EVALUATION, self._evaluations.pop(module))

    def paused(self, kind, begin):
        """Note a pause of the training that ends now."""
        if self._run is not None and not self._closed and get_ident() == self._thread:
            # On a device the work of an evaluation goes on when its last call has returned.
            on_device = isinstance(self._clock, probe.EventClock)
            self._pauses.append([kind, begin, self._clock.mark() if on_device else probe.now()])

    def _settle_batch(self):
        """Nothing more is to be learnt about the batch that came last."""
        if self._batch is not None:
            _add(self._loads, self._batch)
            self._batch = None

    def fetching(self):
        """Return a context for a loader's work on a batch, to be seen in a profile."""
        return self._capture.data() if self._capture is not None else UNPROFILED

    def arriving(self):
        """Return a context that marks in a profile that the device is done with a step."""
        return self._capture.arrival() if self._capture is not None else UNPROFILED

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
        if self._bystander or not self._is_own_thread():
            self._tell_of_another()
            return
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

    def _is_own_thread(self):
        """Several threads may train: the first one counts, and while it lives no other."""
        own = get_ident()
        if self._thread != own:
            if self._thread is not None and any(each.ident == self._thread for each in running_threads()):
                return False
            self._thread = own
        return True

    def _note_step(self, optimizer, start, ready):
        if self._run is None and not self._open(start):
            return
        self._settle_batch()
        number = self._optimizers.setdefault(optimizer, len(self._optimizers))
        is_new = number == len(self._gaps)
        if self._alone or is_new or number in self._turn:
            whole = self._ends_round() and not is_new
            self._write()
            if whole and self._stop.reached():
                self._end_record()
                self._stopped = not (capture.is_requested() and self._begin_capture())
                self._turn, self._loads = [number], {}
                return
        if is_new:
            self._gaps[number] = None
        self._alone = is_new
        self._turn.append(number)
        self._mark = self._clock.mark(ready)
        for row in self._loads.values():
            _add(self._mark_loads, row)
        self._mark_pauses += self._pauses
        self._loads, self._pauses = {}, []
        self._evaluations.clear()

    def _ends_round(self):
        """Whether a turn ends a step: each optimizer that comes every few turns was in it."""
        if not self._turn:
            return False
        self._turns += 1
        for number in self._turn:
            last, _ = self._gaps[number] or (0, 0)
            self._gaps[number] = (self._turns, self._turns - last if last else 0)
        absent = (seen for seen in self._gaps.values() if seen[0] < self._turns)
        return not any(self._turns - last < gap <= LONGEST_ROUND for last, gap in absent)

    def _note_profiled_step(self, optimizer, start, ready):
        """Count a step of the profile, which ends when the first of its optimizers comes round again."""
        self._settle_batch()
        number = self._optimizers.setdefault(optimizer, len(self._optimizers))
        if number in self._turn:
            self._turn.clear()
            rows, self._loads = [row for row in self._loads.values() if row[7] != EVALUATED], {}
            if len({row[0] for row in rows}) == 1 and not any(row[2] is None for row in rows):
                self._profiled_samples.append(sum(row[2] for row in rows))
                self._capture.samples_per_step = statistics.median_low(self._profiled_samples)
            self._stopped = not self._capture.step_ended(ready)
        self._turn.append(number)

    def _begin_capture(self):
        """Take the steps that follow for a profile; returns whether there are any."""
        settling = self._queued_batches + capture.SETTLING_STEPS
        self._capture = capture.Capture(self._profiler, self._clock, self._rank, self._world_size, settling)
        self._capture.begin()
        return self._capture.running

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
                self._run.end(**self.facts)

    def _write(self):
        """Hand the last step to the stream, which waits for the device to pass it."""
        if self._mark is not None:
            lists = self._mark_loads.values(), self._turn if len(self._gaps) > 1 else ()
            loads, turn = (list(each) or None for each in lists)
            pauses = functools.partial(self._timed, self._mark_pauses) if self._mark_pauses else None
            self._run.step_at(self._mark, None, loads=loads, pauses=pauses, turn=turn)
        self._turn.clear()
        self._mark, self._mark_loads, self._mark_pauses = None, {}, []

    def _timed(self, pauses):
        """Read when pauses ended, once the device has passed the step that they are in."""
        return [
            [kind, begin, end if isinstance(end, float) else self._clock.seconds(end, True)]
            for kind, begin, end in pauses
        ]

    def _open(self, start):
        self._clock, rank, world_size, facts = start()
        self._rank, self._world_size = rank, world_size
        name = "observed-{}-rank{}.jsonl".format(self._source, rank)
        try:
            file = probe.EventFile(os.path.join(os.environ[EVENTS_FOLDER], name), os.O_EXCL)
        except OSError as error:
            self._closed = True
            if isinstance(error, FileExistsError):  # another process of the program trains as this rank
                self._tell_of_another()
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
        self._bystander = self._bystander or self._run is not None
        self._closed, self._stopped = self._closed or self._bystander, False
        self._run = self._capture = self._thread = None

    def _tell_of_another(self):
        """Leave an empty file: a process or thread trains here that is not counted."""
        name = "uncounted-{}-rank{}-{}-{}".format(self._source, self._rank, os.getpid(), get_ident())
        with contextlib.suppress(OSError):
            open(os.path.join(os.environ[EVENTS_FOLDER], name), "xb").close()


def _add(rows, row):
    """Add a row of `loads` to that of the same loader, pass and use."""
    key = (row[0], row[6], row[7])
    earlier = rows.get(key)
    if earlier is None:
        rows[key] = list(row)
        return
    earlier[1] += row[1]
    earlier[2] = None if earlier[2] is None or row[2] is None else earlier[2] + row[2]
    earlier[3] += row[3]
    earlier[5] = row[5]


def host_start(facts):
    """The host's clock, and rank and world size by the usual variables."""
    rank, world_size = int(os.environ.get("RANK", "0")), int(os.environ.get("WORLD_SIZE", "1"))
    return probe.HostClock(), rank, world_size, dict(facts, clock="host")
