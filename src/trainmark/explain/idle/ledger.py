"""Charges gaps to what made the host late, as if each delay were taken away.

The rule. A delay is time that a thread which feeds the device spent in a blocking call or in the loader.
Without it everything launched after it would have been launched earlier by as much. So:

1. Where the device is idle while the host stands in the delay, that time is charged to it directly.
2. The rest of the delay, in which the device still worked, is credit: by so much the host would have been
   ahead. Idle time after the delay, in which the host launches one kernel at a time into an empty queue,
   is charged to it until the credit is used up. The latest delay pays first.
3. What no credit covers is the host's own slowness: "launch".
4. Credit lapses one step after the delay: by then the host is ahead again, or never will be.

An `.item()` in a step that the device bounds waits for nearly the whole step, so all idle time after it is
its own. In a step of tiny kernels it waits for a few microseconds, and takes no more than these.
"""

from __future__ import annotations

from typing import NamedTuple

from trainmark.explain.idle.delays import LOADER, SYNCHRONISATION, Delay

LAUNCH = "launch"


class Charge(NamedTuple):
    """A part of a gap, in nanoseconds. `delay` is None where the cause is no delay."""

    cause: str
    start: int
    nanoseconds: int
    delay: Delay | None = None


class Ledger:
    """Takes windows of host lateness by start and gives the charges that fill each of them.

    With a `lapse` of 0 delays are charged directly only: on a CPU no queue carries them on.
    """

    def __init__(self, delays: list[Delay], lapse: int) -> None:
        self._delays = sorted(delays, key=lambda delay: (delay.start, delay.end))
        self._lapse = lapse
        self._next = 0
        self._open: list[Delay] = []
        # Loader time that the host's lead would have hidden had it not waited before.
        self.hidden_without_synchronisation = 0

    def charge(self, start: int, end: int, threads: frozenset[int]) -> list[Charge]:
        """Return charges for [start, end), which add up to its length exactly."""
        while self._next < len(self._delays) and self._delays[self._next].start < end:
            self._open.append(self._delays[self._next])
            self._next += 1
        self._open = [delay for delay in self._open if delay.credit and delay.end + self._lapse > start]
        charges: list[Charge] = []
        moment = start
        for delay in self._open:
            if delay.thread not in threads or delay.end <= moment:
                continue
            first, last = max(delay.start, moment), min(delay.end, end)
            charges += self._draw(moment, first, threads)
            charges += self._direct(delay, first, last)
            moment = last
        return charges + self._draw(moment, end, threads)

    def _direct(self, delay: Delay, start: int, end: int) -> list[Charge]:
        charged = end - start
        delay.credit -= charged
        if delay.cause == LOADER:
            waits = [wait for wait in self._open if wait.cause == SYNCHRONISATION and wait.end <= start]
            self.hidden_without_synchronisation += min(charged, sum(wait.credit for wait in waits))
        return [Charge(delay.cause, start, charged, delay)] if charged else []

    def _draw(self, start: int, end: int, threads: frozenset[int]) -> list[Charge]:
        """Charge time in which the host was in no delay to the delays before it, then to launching."""
        charges = []
        for delay in sorted(self._open, key=lambda delay: delay.end, reverse=True):
            if start == end:
                break
            recent = delay.end <= start < delay.end + self._lapse
            if recent and delay.thread in threads and delay.credit:
                charged = min(delay.credit, end - start)
                delay.credit -= charged
                charges.append(Charge(delay.cause, start, charged, delay))
                start += charged
        return [*charges, Charge(LAUNCH, start, end - start)] if end > start else charges
