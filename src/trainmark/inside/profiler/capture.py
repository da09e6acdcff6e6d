"""The steps taken for a profile: unprofiled ones to compare with, the profiler's passes, and the manifest.

Whoever owns the loop, or hears that a step has ended, drives it:

    capture = Capture(make_backend, clock, rank, world_size)
    capture.begin()
    while capture.running:
        with capture.data():
            batch = next(batches)
        train(batch)
        capture.step_ended()

`make_backend()` returns a framework's profiler, or None where it has none:

    .passes()            names of its passes, in order: "timing" at least overhead, "detail" with operators
    .prepare(name)       optional; begin to warm up, two steps before `start`
    .start(name)         begin to record
    .stop(name, path)    end it and write a Chrome trace, gzip-compressed, to `path`
    .annotate(name)      a context that names what runs inside it in the trace
    .facts()             `framework`, `framework_version`, `device` ("cuda" or "cpu"), `device_name`, others
    .start_memory()      optional; begin to watch the memory of one step, after all others
    .memory()            what held it at its peak, as JSON
    .peaks()             optional; FLOP/s of a large product by precision, and bytes/s of a copy
    .synchronize()       optional; wait until the device has nothing left to do
"""

import contextlib
import json
import os
import sys

from trainmark import probe
from trainmark.inside.profiler.phases import (
    MEMORY,
    MOST_SETTLING_STEPS,
    SETTLING_STEPS,
    WARMUP_STEPS,
    Phase,
    Tries,
    as_many_on_every_rank,
    pass_phases,
    plan,
)

PROFILE = "TRAINMARK_PROFILE"
PROFILE_STEPS = "TRAINMARK_PROFILE_STEPS"
VERSION = 1
STEP, DATA, ARRIVED = "trainmark_step#{}", "trainmark_data", "trainmark_arrived"
USUAL_STEPS = 5
# A GPU at its power limit cools down meanwhile, and is faster for a second or two until it is hot again.
MOST_HEATING_STEPS = 100
# Where there are no events a thread waits for the end of a step, and is woken milliseconds late while the
# host issues other steps. So it issues more until the last mark has arrived: then all marks are as late.
MOST_TRAILING_STEPS = 64
# Nothing else is written meanwhile, and a rank that writes nothing for long counts as hung.
SIGN_OF_LIFE_SECONDS = 1.0
# On a CPU the steps of a pass may take longer for a while: records of operators take pages that the memory of
# the training had, or something else runs. Shares would be refused, so it is taken again after the others.
MOST_TRYING_SECONDS = 60.0
IN_MANIFEST = ("framework", "framework_version", "device", "device_name")


def is_requested():
    return bool(os.environ.get(PROFILE))


class Capture:
    """The profiled steps of one rank.

    What fails is an `error` in the manifest, or a line on standard error where that cannot be written; the
    number of steps stays the same, since other ranks take them too.
    """

    def __init__(
        self, make_backend, clock=None, rank=0, world_size=1, settling=SETTLING_STEPS, heating_seconds=0.0
    ):
        self.samples_per_step = None
        # Ranks that train together must take as many steps, and their clocks differ.
        self._heating_seconds = heating_seconds if world_size == 1 else 0.0
        self._heating_from, self._heating_steps = None, 0
        self._clock = clock or probe.HostClock()
        self._rank, self._world_size = rank, world_size
        self._folder = os.environ[PROFILE]
        requested = os.environ.get(PROFILE_STEPS, "")
        self._steps = int(requested) if requested.isdigit() and int(requested) else USUAL_STEPS
        self._settling = max(SETTLING_STEPS, min(settling, MOST_SETTLING_STEPS))
        self._phases, self._phase = [], None
        self._all_steps = 0
        self._ended = 0  # steps of the phase
        self._marks = []
        self._error = None  # of the phase
        self._recording, self._annotation = False, None
        self._passes, self._unprofiled = [], []
        self._tries = Tries()  # of the first pass
        self._host_seconds, self._issued_from = [], None
        self._memory, self._memory_facts = None, {}
        self._backend = self._attempt(make_backend)
        self._failed_here = self._error is not None
        self._no_backend = self._error or "no profiler of this framework is known for this device"
        self._closed = False
        self._shown_alive = probe.now()

    @property
    def running(self):
        return self._phase is not None

    def begin(self):
        """Make the folder ready; the next step is the first of the first phase."""
        probe.stop_recording()
        if self._backend is not None:
            self._phases = plan(self._backend, self._steps, self._settling)
        if self._world_size > 1 and (self._backend is not None or self._failed_here):
            self._phases = as_many_on_every_rank(self._phases, self._steps, self._settling)
        self._all_steps = sum(phase.total for phase in self._phases)
        self._began = probe.now()
        try:
            self._clear_folder()
        except OSError as error:
            self._give_up(error)
            alone = self._world_size == 1
            self._phases = [] if alone else [Phase(None, phase.lead, phase.steps) for phase in self._phases]
        self._next_phase()

    def step_ended(self, ready=None):
        """Count a step; returns whether more are wanted. `ready` is what a clock of arrays waits for."""
        phase = self._phase
        if phase is None:
            return False
        if self._heating_from is not None:
            self._heat()
            return True
        self._ended += 1
        if self._issued_from is not None:
            self._host_seconds.append(probe.now() - self._issued_from)
            self._issued_from = None
        self._close_annotation()
        self._show_alive()
        if phase.lead < self._ended <= phase.total:
            self._marks.append(self._attempt(self._clock.mark, *([] if ready is None else [ready])))
        if self._ended >= phase.total:
            if self._trails():
                return True
            self._end_phase()
            self._next_phase()
            return self.running
        if self._ended == WARMUP_STEPS and phase.profiler_pass is not None:
            self._attempt(self._backend.start, phase.profiler_pass)
            self._recording = self._error is None
        if self._recording and self._ended >= phase.lead:
            self._annotation = self._attempt(self._annotate, STEP.format(self._ended - phase.lead))
        return True

    def data(self):
        """Return a context for fetching a batch."""
        return self._backend.annotate(DATA) if self._annotation is not None else contextlib.nullcontext()

    def arrival(self):
        """Return a context that marks the end of a step's work, which may come long after it was given."""
        return self._backend.annotate(ARRIVED) if self._recording else contextlib.nullcontext()

    def close(self):
        """Write the manifest; the program may have ended by itself before the last step."""
        if not self._closed:
            self._closed = True
            if self._phase is not None:
                self._end_early()
            with contextlib.suppress(OSError):
                os.unlink(self._alive_file())
            try:
                if self._tries.records:
                    self._keep_best_try()
                self._write_manifest()
            except Exception as error:  # noqa: BLE001  the program has trained all the same
                self._give_up(error)

    def _next_phase(self):
        if not self._phases:
            self._phases = self._next_try()
        self._phase = self._phases.pop(0) if self._phases else None
        self._ended, self._marks, self._error = 0, [], None
        if self._phase is None:
            self.close()
        elif self._phase.profiler_pass == MEMORY:
            self._attempt(self._backend.start_memory)
        else:
            if self._phase.profiler_pass is not None and hasattr(self._backend, "prepare"):
                self._attempt(self._backend.prepare, self._phase.profiler_pass)
            self._heating_steps = 0
            self._heating_from = probe.now() if self._heating_seconds else None
            self._begin_issuing()

    def _heat(self):
        """Count a step that only keeps the device busy, before the phase begins."""
        self._show_alive()
        self._heating_steps += 1
        heated = probe.now() - self._heating_from >= self._heating_seconds
        if heated or self._heating_steps >= MOST_HEATING_STEPS:
            self._heating_from = None
            self._begin_issuing()

    def _begin_issuing(self):
        """Time how long the host takes for one step while the device has room for all that it launches."""
        unprofiled = self._phase.profiler_pass is None and self._phase.lead
        if unprofiled and self._heating_from is None and hasattr(self._backend, "synchronize"):
            self._attempt(self._backend.synchronize)
            self._issued_from = probe.now()

    def _trails(self):
        """Whether to go on with steps that nobody looks at; ranks must take as many as others."""
        has_arrived = getattr(self._clock, "has_arrived", None)
        if has_arrived is None or self._world_size > 1 or not self._marks or self._error is not None:
            return False
        few = self._ended < self._phase.total + MOST_TRAILING_STEPS
        return few and not self._attempt(has_arrived, self._marks[-1])

    def _end_phase(self):
        name = self._phase.profiler_pass
        if name is None:
            self._unprofiled.append(self._attempt(self._seconds) or [])
            self._tries.end(self._unprofiled[-1])
            return
        if name == MEMORY:
            self._memory = self._attempt(self._backend.memory)
            self._memory_facts = {"memory_error": self._error} if self._error else {}
            return
        self._stop()
        seconds = self._attempt(self._seconds)
        if self._error is None:
            trace = self._trace(name)
            record = {"trace": trace, "steps": self._phase.steps, "step_seconds": seconds}
        else:
            record = {"error": self._error}
        record["name"] = name
        if not self._passes or self._passes[0]["name"] == name:
            self._tries.begin(record, self._unprofiled[-1])
        if len(self._tries.records) < 2:
            self._passes.append(record)

    def _next_try(self):
        """Return the phases of another try of the first pass, if one is needed and nobody else is disturbed.

        Ranks that train together take as many steps; a GPU's kernels take as long under a profiler.
        """
        in_time = probe.now() - self._began < MOST_TRYING_SECONDS
        if self._world_size > 1 or not in_time or not self._tries.is_disturbed():
            return []
        if (self._attempt(self._backend.facts) or {}).get("device") != "cpu":
            return []
        phases = pass_phases(self._passes[0]["name"], self._steps, self._settling)
        self._all_steps += sum(phase.total for phase in phases)
        return phases

    def _keep_best_try(self):
        first, (best, beside) = self._passes[0], self._tries.best()
        if best is not first:
            os.replace(os.path.join(self._folder, best["trace"]), os.path.join(self._folder, first["trace"]))
            self._passes[0] = dict(best, trace=first["trace"])
        for record in self._tries.records[1:]:
            with contextlib.suppress(KeyError, OSError):
                os.unlink(os.path.join(self._folder, record["trace"]))
        self._unprofiled = beside + self._unprofiled[len(beside) : len(self._passes) + 1]

    def _end_early(self):
        """Give up the phases that are left. The trace of part of a pass would be taken for all of it."""
        self._close_annotation()
        if self._recording:
            self._stop()
            with contextlib.suppress(OSError):
                os.unlink(os.path.join(self._folder, self._trace(self._phase.profiler_pass)))
        known = [record["name"] for record in self._passes]
        reason = "the program ended after {} of {} steps of this pass".format(self._ended, self._phase.total)
        for phase in [self._phase, *self._phases]:
            if phase.profiler_pass == MEMORY:
                self._memory_facts = {"memory_error": "the program ended before the step for it"}
            elif phase.profiler_pass is not None and phase.profiler_pass not in known:
                self._passes.append({"name": phase.profiler_pass, "error": reason})
            reason = "the program ended before this pass"
        self._phases, self._phase = [], None

    def _stop(self):
        """Have the trace written; a profiler that has started is stopped even after an error."""
        if self._recording:
            self._recording = False
            name, earlier, self._error = self._phase.profiler_pass, self._error, None
            self._attempt(self._backend.stop, name, os.path.join(self._folder, self._trace(name)))
            self._error = earlier or self._error

    def _annotate(self, name):
        annotation = self._backend.annotate(name)
        annotation.__enter__()
        return annotation

    def _close_annotation(self):
        if self._annotation is not None:
            annotation, self._annotation = self._annotation, None
            self._attempt(annotation.__exit__, None, None, None)

    def _seconds(self):
        """Return how long each step took, from the end of the one before it to its own."""
        ends = [self._clock.seconds(mark, wait=True) for mark in self._marks]
        return [end - start for start, end in zip(ends, ends[1:])]

    def _attempt(self, call, *arguments):
        """Return what the call gives; after the first error of a phase nothing more is tried in it."""
        if self._error is None:
            try:
                return call(*arguments)
            except Exception as error:  # noqa: BLE001  whatever a profiler raises, the program goes on
                self._error = _sentence(error)
        return None

    def _trace(self, name):
        is_first = all(record["name"] != name for record in self._passes)
        number = "" if is_first else "-{}".format(len(self._tries.records) + 1)
        return "rank{}-{}{}.json.gz".format(self._rank, name, number)

    def _clear_folder(self):
        """Remove what an earlier try of this rank has left; fails where nothing can be written."""
        os.makedirs(self._folder, exist_ok=True)
        for name in os.listdir(self._folder):
            if name.startswith(("rank{}-".format(self._rank), "rank{}.".format(self._rank))):
                os.unlink(os.path.join(self._folder, name))
        with open(self._manifest() + ".part", "w"):
            pass

    def _show_alive(self):
        """Let a file grow once a second; between two steps, so that no step is the longer for it."""
        now = probe.now()
        if now - self._shown_alive >= SIGN_OF_LIFE_SECONDS and self._folder is not None:
            self._shown_alive = now
            with contextlib.suppress(OSError):
                with open(self._alive_file(), "a") as file:
                    file.write(".")

    def _alive_file(self):
        return os.path.join(self._folder or "", "rank{}.alive".format(self._rank))

    def _manifest(self):
        return os.path.join(self._folder, "rank{}.json".format(self._rank))

    def _write_manifest(self):
        if self._folder is None:
            return
        facts = dict(self._backend.facts()) if self._backend is not None else {}
        clock = getattr(self._clock, "name", "host")
        manifest = {"version": VERSION, "rank": self._rank, "world_size": self._world_size}
        manifest.update((name, facts.pop(name, None)) for name in IN_MANIFEST)
        manifest.update(
            passes=self._passes,
            unprofiled_step_seconds=self._unprofiled,
            host_step_seconds=self._host_seconds,
            samples_per_step=self.samples_per_step,
            memory=self._memory,
            stream_clock="cuda" if clock == "cuda" else "host",
            facts=dict(
                facts,
                clock=clock,
                cores=_cores(),
                peaks=self._peaks(),
                steps_taken=self._all_steps,
                **self._memory_facts,
            ),
        )
        if self._backend is None:
            manifest["error"] = self._no_backend
        with open(self._manifest() + ".part", "w") as file:
            json.dump(manifest, file, default=str)
        os.replace(self._manifest() + ".part", self._manifest())

    def _peaks(self):
        """Return what the device does at best; None where no pass is there to use it."""
        if all("error" in record for record in self._passes):
            return None
        with contextlib.suppress(Exception):  # the passes are worth having without
            return self._backend.peaks() if hasattr(self._backend, "peaks") else None

    def _give_up(self, error):
        self._folder = None
        sys.stderr.write("trainmark: no profile is written: {}\n".format(_sentence(error)))


def _cores():
    """Return how many cores this process may use."""
    allowed = getattr(os, "sched_getaffinity", None)
    return len(allowed(0)) if allowed else os.cpu_count()


def _sentence(error):
    """Return an exception as one line."""
    text = " ".join(str(error).split())
    return "{}: {}".format(type(error).__name__, text) if text else type(error).__name__
