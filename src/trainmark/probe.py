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
import json
import operator
import os
import time
from collections import deque
from typing import IO, Any, Deque

EVENTS_FOLDER = "TRAINMARK_EVENTS"
NODE = "TRAINMARK_NODE"
FLUSH_SECONDS = 0.25
# A device that runs this many steps behind the host is waited for: the queue must not grow without end.
MOST_PENDING = 64


class HostClock:
    """Steps that are over when the call returns, as on a CPU.

    A clock for a device has the same two methods: `mark` is called at the end of a step and must not
    wait; `seconds(mark, wait)` gives the monotonic time at which the device passed it, or None while
    it has not.
    """

    def mark(self) -> Any:
        return time.monotonic()

    def seconds(self, mark: Any, wait: bool) -> float | None:
        return float(mark)


class Run:
    """What `start` gives; one per process."""

    def __init__(self, file: IO[bytes] | None, rank: int, clock: HostClock) -> None:
        self._file = file
        self._rank = rank
        self._clock = clock
        self._pending: Deque[Any] = deque()
        self._lines: list[str] = []
        self._next_step = 0
        self._flushed = time.monotonic()
        # wall = mono + this; taken once, so that a clock set during the run does not bend the steps.
        self._wall_offset = time.time() - time.monotonic()

    def step(self, samples: float, **numbers: Any) -> None:
        """The step that just ended: its samples, and `loss`, `lr`, `memory` where known.

        `data_wait`, `compute` and `communication` are seconds of the step: waiting for data, working, and
        doing nothing but waiting for the gradients of other ranks.

        A number may be a callable without arguments: it is called once the device has passed the step,
        so that reading a loss back never stalls the pipeline.
        """
        if self._file is not None:
            self.step_at(self._clock.mark(), samples, **numbers)

    def step_at(self, mark: Any, samples: float | None, **numbers: Any) -> None:
        """The step that ended at an earlier mark of the clock."""
        if self._file is None:
            return
        self._pending.append((self._next_step, mark, samples, numbers))
        self._next_step += 1
        self._drain(wait=len(self._pending) > MOST_PENDING, most=1)
        if time.monotonic() - self._flushed > FLUSH_SECONDS:
            self._drain(wait=False)
            self.flush()

    def mark(self, kind: str, **facts: Any) -> None:
        """An `epoch`, `eval`, `checkpoint` or `note` between the steps."""
        self._drain(wait=True)
        self._emit(kind, time.monotonic(), facts=facts)
        self.flush()

    def settle(self) -> None:
        """Waits for the device to pass the last step, and has all steps on disk: before a checkpoint, say."""
        self._drain(wait=True)
        self.flush()

    def end(self, **facts: Any) -> None:
        """The run is over by its own will; without this the trial counts as cut short."""
        self._drain(wait=True)
        self._emit("run_end", time.monotonic(), facts=facts)
        self.close()

    def flush(self) -> None:
        self._flushed = time.monotonic()
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
    clock: HostClock | None = None,
    rank: int | None = None,
    world_size: int | None = None,
    first_step: int = 0,
    **facts: Any,
) -> Run:
    """Begins the record of this process, just before its first step; `facts` say what is measured.

    Rank and world size are read from the usual variables (RANK, WORLD_SIZE) where they are not given.
    `scope` says whether `samples` count this rank ("rank") or all of them ("global"). `first_step` is where a
    training goes on that was cut off before.
    """
    folder = os.environ.get(EVENTS_FOLDER)
    if not folder:
        return Run(None, 0, HostClock())
    rank = int(os.environ.get("RANK", "0")) if rank is None else rank
    world_size = int(os.environ.get("WORLD_SIZE", "1")) if world_size is None else world_size
    # Unbuffered, whole lines per write: what was flushed survives a kill, and no line is torn.
    path = os.path.join(folder, "rank{}.jsonl".format(rank))
    if first_step or "resumed_step" in facts:  # at step 0 where no checkpoint could be read
        _drop_torn_line(path)
    file = open(path, "ab", buffering=0)
    if NODE in os.environ:
        facts.setdefault("node", os.environ[NODE])
    run = Run(file, rank, clock or HostClock())
    run._next_step = first_step
    run._emit("run_start", time.monotonic(), world_size=world_size, unit=unit, scope=scope, facts=facts)
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
