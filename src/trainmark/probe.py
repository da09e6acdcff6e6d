"""The emitter inside a measured program: standard library only, Python 3.7+, well under 0.5 % of a step.

    from trainmark import probe

    run = probe.start(unit="images")
    for batch in loader:
        train(batch)
        run.step(samples=len(batch))
    run.end()

Outside Trainmark (no TRAINMARK_EVENTS in the environment) every call does nothing.
"""

from __future__ import annotations

import atexit
import contextlib
import errno
import json
import operator
import os
import time
from collections import deque
from importlib import import_module
from typing import Any, Callable, Deque
from weakref import WeakSet

EVENTS_FOLDER = "TRAINMARK_EVENTS"
NODE = "TRAINMARK_NODE"
FLUSH_SECONDS = 0.25
# A device that runs this many steps behind the host is waited for: the queue must not grow without end.
MOST_PENDING = 64
# By how much the process's clock may leave the machine's: /proc/uptime counts in hundredths of a second, a
# process may be held up between the two readings, and both errors are in either end of a span and of a gap.
CLOCK_SHARE, CLOCK_SECONDS = 0.01, 0.03
MOST_READINGS = 5
# Fewer looks cannot tell a clock of another pace from a machine that slept once.
FEWEST_LOOKS = 4


def now(clock: Callable[[], float] = time.monotonic) -> float:
    """Return the monotonic time; what replaces it in `time` and in modules later does not reach it here."""
    return clock()


def wall_time(clock: Callable[[], float] = time.time) -> float:
    return clock()


def clock_and_machine() -> tuple[float, float] | None:
    """Return this clock and the kernel's, read at once; libraries that replace clocks leave /proc alone."""
    for _ in range(MOST_READINGS):
        before = now()
        try:
            with open("/proc/uptime", "rb") as file:
                machine = float(file.read().split()[0])
        except (OSError, ValueError, IndexError):
            return None
        if now() - before < CLOCK_SECONDS / 10:
            return before, machine
    return None


class ClockCheck:
    """How far the clock of this process leaves the machine's, as under faketime, libfaketime and freezegun.

    While the machine sleeps monotonic time stands still, and rightly so: that is one wide gap among none.
    """

    def __init__(self) -> None:
        self._first = self._last = clock_and_machine()
        self._looks, self._widest = 0, 0.0

    def look(self) -> None:
        read = clock_and_machine()
        if read is None:
            return
        if self._last is None:
            self._first = self._last = read
        self._looks += 1
        self._widest = max(self._widest, (read[1] - self._last[1]) - (read[0] - self._last[0]))
        self._last = read

    def facts(self) -> dict[str, float]:
        """Nothing where the two agree."""
        self.look()
        if self._first is None or self._last is None:
            return {}
        span, machine = self._last[0] - self._first[0], self._last[1] - self._first[1]
        slept = self._widest if self._looks >= FEWEST_LOOKS else 0.0
        drift = machine - slept - span
        return {"clock_drift": round(drift, 2)} if abs(drift) > CLOCK_SECONDS + CLOCK_SHARE * span else {}


class EventFile:
    """A file to append whole lines to, though the program may close its descriptor and open another there."""

    def __init__(self, path: str, flags: int = 0) -> None:
        self.name = os.path.abspath(path)
        self._descriptor = self._open(os.O_CREAT | flags)
        self._identity = self._identity_now()

    def write(self, data: memoryview) -> int:
        if self._identity_now() != self._identity:
            self._descriptor = self._open(0)
            if self._identity_now() != self._identity:
                self.close()
                raise OSError(errno.ESTALE, os.strerror(errno.ESTALE), self.name)
        return os.write(self._descriptor, data)

    def close(self) -> None:
        if self._identity_now() == self._identity:
            os.close(self._descriptor)

    def _open(self, flags: int) -> int:
        # Unbuffered, whole lines per write: what was flushed survives a kill, and no line is torn.
        return os.open(self.name, os.O_WRONLY | os.O_APPEND | getattr(os, "O_BINARY", 0) | flags, 0o666)

    def _identity_now(self) -> tuple[int, int] | None:
        with contextlib.suppress(OSError):
            seen = os.fstat(self._descriptor)
            return seen.st_dev, seen.st_ino
        return None


class HostClock:
    """Steps that are over when the call returns, as on a CPU.

    A clock for a device has the same two methods: `mark` is called at the end of a step (with `ready` where
    the step has one) and must not wait; `seconds(mark, wait)` gives the monotonic time at which the device
    passed it, or None while it has not.
    """

    def mark(self, ready: Any = None) -> Any:
        return now()

    def seconds(self, mark: Any, wait: bool) -> float | None:
        return float(mark)


class SynchronousClock(HostClock):
    """Steps at whose end the program itself waits for the device."""

    name = "synchronous"


class EventClock(HostClock):
    """Step boundaries from the framework's own events: recorded in the stream, read once the device is past.

    `event()` makes one that can tell times, `stream()` is where it is recorded, without it the current one.
    """

    name = "cuda"

    def __init__(self, event: Callable[[], Any], stream: Callable[[], Any] | None = None) -> None:
        self._event, self._stream = event, stream
        self._passed: list[Any] = []
        self._last = self.mark()
        self._last.synchronize()
        self._seconds = now()

    def mark(self, ready: Any = None) -> Any:
        event = self._passed.pop() if self._passed else self._event()
        event.record() if self._stream is None else event.record(self._stream())
        return event

    def seconds(self, mark: Any, wait: bool) -> float | None:
        if wait:
            mark.synchronize()
        elif not mark.query():
            return None
        # From event to event: an elapsed time is a float32 and would blur over a long run.
        self._seconds += self._last.elapsed_time(mark) / 1e3
        self._passed.append(self._last)
        self._last = mark
        return self._seconds


class LossClock(HostClock):
    """Step boundaries from the losses, where there are no events: threads wait for them, not the training.

    `value(loss)` waits for a loss and gives it as a number. A loss may come before the backward pass of its
    step: from loss to loss is one step all the same.
    """

    def __init__(self, value: Callable[[Any], Any], waiters: int = 1, name: str = "loss") -> None:
        from concurrent.futures import ThreadPoolExecutor

        self.name, self._value = name, value
        self._waiters = ThreadPoolExecutor(waiters)
        self._last: Any = None

    def read(self, loss: Any) -> Callable[[], Any]:
        """Wait for the loss of the step that is marked next; the function returned gives its number."""
        arrival = self._last = self._waiters.submit(lambda: (self._value(loss), now()))
        return lambda: arrival.result()[0]

    def mark(self, ready: Any = None) -> Any:
        if ready is not None:
            self.read(ready)
        if self._last is None:
            raise ValueError("this clock needs an array of each step: run.step(samples, ready=loss).")
        mark, self._last = self._last, None
        return mark

    def has_arrived(self, mark: Any) -> bool:
        return bool(mark.done())

    def seconds(self, mark: Any, wait: bool) -> float | None:
        return float(mark.result()[1]) if wait or mark.done() else None

    def close(self) -> None:
        self._waiters.shutdown()


def named_clock(name: str) -> HostClock:
    """Make the clock of that name; where PyTorch sees no GPU, "cuda" is the host's."""
    kind, _, index = name.partition(":")
    if name == "jax":
        return LossClock(import_module("jax").block_until_ready, name=name)
    if kind == "cuda":
        cuda: Any = import_module("torch").cuda
        if not cuda.is_available():
            return HostClock()
        device = int(index) if index else cuda.current_device()
        return EventClock(lambda: cuda.Event(enable_timing=True), lambda: cuda.current_stream(device))
    if name not in ("host", SynchronousClock.name):
        raise ValueError("no clock is called {!r}: host, synchronous, cuda, cuda:N or jax.".format(name))
    return HostClock() if name == "host" else SynchronousClock()


_runs: WeakSet[Run] = WeakSet()


def stop_recording() -> None:
    """Record no more steps of this process: those that follow are taken for a profile, and not measured."""
    for run in _runs:
        run._recording = False


class Run:
    """What `start` gives; one per process."""

    def __init__(self, file: EventFile | None, rank: int, clock: HostClock) -> None:
        self._recording = True
        _runs.add(self)
        self._file, self._rank, self._clock = file, rank, clock
        self._pending: Deque[Any] = deque()
        self._lines: list[str] = []
        self._next_step = 0
        self._flushed = now()
        # wall = mono + this; taken once, so that a clock set during the run does not bend the steps.
        self._wall_offset = wall_time() - now()
        self._clock_check = ClockCheck() if file is not None else None

    def step(self, samples: float | None, ready: Any = None, **numbers: Any) -> None:
        """The step that just ended: its samples, and `loss`, `lr`, `memory` where known.

        The clock "jax" takes the step as over when the array `ready` is, by default the loss: one that is not
        donated to the next step. `data_wait`, `compute` and `communication` are seconds of the step: waiting
        for data, working, and doing nothing but waiting for the gradients of other ranks. A number may be a
        callable without arguments, called once the device has passed the step: reading a loss stalls nothing.
        """
        if self._file is None:
            return
        if ready is None and isinstance(self._clock, LossClock) and not callable(numbers.get("loss")):
            ready = numbers.get("loss")
        self.step_at(self._clock.mark(*([] if ready is None else [ready])), samples, **numbers)

    def step_at(self, mark: Any, samples: float | None, **numbers: Any) -> None:
        """The step that ended at an earlier mark of the clock."""
        if self._file is None or not self._recording:
            return
        self._pending.append((self._next_step, mark, samples, numbers))
        self._next_step += 1
        self._drain(wait=len(self._pending) > MOST_PENDING, most=1)
        due = now() - self._flushed > FLUSH_SECONDS
        if due:
            self._drain(wait=False)
        # The first steps soon, and hardly more writes for it: a short program may leave by `os._exit`.
        if due or self._next_step & (self._next_step - 1) == 0:
            self.flush()

    def mark(self, kind: str, **facts: Any) -> None:
        """An `epoch`, `eval`, `checkpoint` or `note` between the steps."""
        self._drain(wait=True)
        self._emit(kind, now(), facts=facts)
        self.flush()

    def settle(self) -> None:
        """Waits for the device to pass the last step, and has all steps on disk: before a checkpoint, say."""
        self._drain(wait=True)
        self.flush()

    def end(self, **facts: Any) -> None:
        """The run is over by its own will; without this the trial counts as cut short."""
        self._drain(wait=True)
        if self._clock_check is not None:
            facts.update(self._clock_check.facts())
        self._emit("run_end", now(), facts=facts)
        self.close()

    def flush(self) -> None:
        self._flushed = now()
        if self._clock_check is not None:
            self._clock_check.look()
        file = self._file
        if self._lines and file is not None:
            rest, self._lines = memoryview("".join(self._lines).encode()), []
            try:
                while rest:
                    rest = rest[file.write(rest) :]
            except OSError as error:
                # With a hole in it the record is worth nothing: it ends here.
                self._file = None
                file.close()
                raise OSError(error.errno, os.strerror(error.errno or 0), file.name) from error

    def close(self) -> None:
        if self._file is not None:
            self.flush()
            self._file.close()
            self._file = None

    def _drain(self, wait: bool, most: int | None = None) -> None:
        """Writes down the steps that the device has passed, oldest first."""
        while self._pending and most != 0:
            step, mark, samples, numbers = self._pending[0]
            passed = self._clock.seconds(mark, wait)
            if passed is None:
                return
            self._pending.popleft()
            known = {name: value() if callable(value) else value for name, value in numbers.items()}
            self._emit("step", passed, step=step, samples=samples, **known)
            most = None if most is None else most - 1

    def _emit(self, kind: str, mono: float | None, **fields: Any) -> None:
        if self._file is None:
            return
        event: dict[str, Any] = {"event": kind, "rank": self._rank}
        if mono is not None:
            event.update(mono=mono, wall=mono + self._wall_offset)
        event.update((name, value) for name, value in fields.items() if value is not None)
        self._lines.append(_encode(event) + "\n")


def _plain(value: Any) -> Any:
    """Numbers of array libraries as numbers, anything else as its text."""
    for number in (operator.index, float):
        try:
            return number(value)
        except (TypeError, ValueError):
            continue
    return str(value)


# Made once: `json.dumps` with arguments would build an encoder for every step.
_encode = json.JSONEncoder(separators=(",", ":"), default=_plain).encode


def start(
    unit: str = "samples",
    scope: str = "rank",
    clock: HostClock | str | None = None,
    rank: int | None = None,
    world_size: int | None = None,
    first_step: int = 0,
    **facts: Any,
) -> Run:
    """Begins the record of this process, just before its first step; `facts` say what is measured.

    Rank and world size are read from the usual variables (RANK, WORLD_SIZE) where they are not given.
    `scope` says whether `samples` count this rank ("rank") or all of them ("global"). `first_step` is where a
    training goes on that was cut off before. `clock` is one of your own, or a name: "cuda" (PyTorch's current
    GPU; or "cuda:1"), "jax", "synchronous" (the program waits for the device at each step), "host".
    """
    folder = os.environ.get(EVENTS_FOLDER)
    if not folder:
        return Run(None, 0, HostClock())
    rank = int(os.environ.get("RANK", "0")) if rank is None else rank
    world_size = int(os.environ.get("WORLD_SIZE", "1")) if world_size is None else world_size
    timed = named_clock(clock or "host") if clock is None or isinstance(clock, str) else clock
    facts["clock"] = "host" if type(timed) is HostClock else getattr(timed, "name", "own")
    path = os.path.join(folder, "rank{}.jsonl".format(rank))
    if first_step or "resumed_step" in facts:  # at step 0 where no checkpoint could be read
        _drop_torn_line(path)
    file = EventFile(path)
    if NODE in os.environ:
        facts.setdefault("node", os.environ[NODE])
    run = Run(file, rank, timed)
    run._next_step = first_step
    run._emit("run_start", now(), world_size=world_size, unit=unit, scope=scope, facts=facts)
    run.flush()
    atexit.register(run.close)
    show_stacks_on_request()
    return run


def _drop_torn_line(path: str) -> None:
    """What a full disk left of a line when this training was cut off."""
    with contextlib.suppress(FileNotFoundError), open(path, "rb+") as file:
        file.truncate(file.read().rfind(b"\n") + 1)


def show_stacks_on_request() -> None:
    """A watchdog that finds this process silent asks where it stands before it ends it."""
    import faulthandler
    import signal

    if hasattr(faulthandler, "register"):
        # A notebook's or a test's standard error is no file: then nobody can ask.
        with contextlib.suppress(OSError, ValueError, AttributeError, RuntimeError):
            faulthandler.register(signal.SIGUSR1, all_threads=True)
