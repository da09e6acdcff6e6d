"""Why the device was idle: each gap split among its causes, exactly, with evidence.

On a GPU the next kernel's launch decides. Where the host had launched it before the device fell idle, it
was queued in time and waited for something on the device: "dependency" (a stream's wait, the next node of
a graph, the latency of a start). Otherwise the host was late, and the ledger says by which rule that time is
"synchronisation", "loader" or "launch", as if each delay were taken away. A kernel without its launch in the
profile leaves "other".

On a CPU nothing is launched: a gap is time in which no operator ran, and belongs to the loader, to a
collective of another thread ("communication"), or to the Python between operators ("launch").
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from trainmark.explain.breakdown import Gap
from trainmark.explain.delays import (
    LOADER,
    SYNCHRONIZATION,
    Delay,
    feeding_threads,
    launch_rows,
    loader_delays,
    synchronizations,
)
from trainmark.explain.evidence import PlaceTally, Witness, milliseconds
from trainmark.explain.explanation import IdleTime
from trainmark.explain.profile import Nanoseconds, Profile
from trainmark.explain.trace_events import collective_rows
from trainmark.view.message import Message, _

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
            waits = [wait for wait in self._open if wait.cause == SYNCHRONIZATION and wait.end <= start]
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


DEPENDENCY = "dependency"
COMMUNICATION = "communication"
OTHER = "other"
# A kernel starts no sooner after its launch call begins; measured per profile, and never taken for more.
MOST_LATENCY = 10_000
LATENCY_QUANTILE = 0.05
# Once the launch call has returned, the start of an idle device takes no longer than this under a profiler.
START_TOLERANCE = 20_000
# The share of the loader's time from which it is worth saying that a synchronisation exposes it.
WORTH_A_NOTE = 0.1


class _Account:
    """One cause: its time, its gaps, and where it was seen."""

    def __init__(self) -> None:
        self.nanoseconds = 0
        self.gaps: set[int] = set()
        self.tally = PlaceTally()

    def add(self, gap: int, nanoseconds: int, place: str, event: int) -> None:
        self.nanoseconds += nanoseconds
        self.gaps.add(gap)
        self.tally.add(place, nanoseconds, event)


def causes(profile: Profile, gaps: Sequence[Gap], detail: Profile | None = None) -> tuple[IdleTime, ...]:
    """Return idle time by cause, the longest first; nanoseconds add up to those of the gaps.

    `gaps` of a cause are those in which it had a part. `detail` is the pass with operators and Python, and
    gives evidence where `profile` has neither.
    """
    ordered = sorted(gap for gap in gaps if gap.end > gap.start)
    summaries: Summaries = {}
    notes: Summaries = {}
    if profile.device == "cpu":
        accounts = _on_cpu(profile, ordered, detail)
    else:
        accounts, summaries, notes = _on_gpu(profile, ordered, detail)
    rows = (
        IdleTime(
            cause,
            account.nanoseconds,
            len(account.gaps),
            (
                *summaries.get(cause, ()),
                *account.tally.sentences(max(1, len(profile.steps))),
                *notes.get(cause, ()),
            ),
        )
        for cause, account in accounts.items()
    )
    return tuple(sorted(rows, key=lambda row: (-row.nanoseconds, row.cause)))


Accounts = dict[str, _Account]
Summaries = dict[str, tuple[str, ...]]


def _on_gpu(
    profile: Profile, gaps: list[Gap], detail: Profile | None
) -> tuple[Accounts, Summaries, Summaries]:
    host, spans = profile.host, profile.spans
    launches, feeding = launch_rows(host), feeding_threads(profile)
    witness = Witness(profile, detail)
    delays = synchronizations(profile, feeding)
    loader = loader_delays(profile, feeding)
    if not loader and witness.match is not None:
        loader = witness.match.loader()
    ledger = Ledger([*delays, *loader], _step_length(profile))
    latency = _latency(profile, launches)
    bounds = _launch_bounds(profile, launches)
    accounts: Accounts = defaultdict(_Account)
    for index, gap in enumerate(gaps):
        span = int(np.searchsorted(spans.start, gap.end))
        row = launches.get(int(spans.launch[span])) if span < len(spans) else None
        if row is None:
            queued = span < len(spans) and bounds[span] + latency <= gap.start
            name = witness.span_name(span) if span < len(spans) else _("the end of the step")
            place = _queued(name) if queued else _("no launch recorded: {kernel}", kernel=name)
            accounts[DEPENDENCY if queued else OTHER].add(index, gap.end - gap.start, place, index)
            continue
        ready = int(host.start[row]) + latency
        late_end = _late_end(gap, ready, int(host.end[row]))
        if late_end > gap.start:
            window = ledger.charge(gap.start, late_end, feeding | {int(host.thread[row])})
            _book(accounts, window, index, witness, span, row)
        if gap.end > late_end:
            in_graph = bool(spans.in_graph[span])
            place = _("between nodes of a graph") if in_graph else _queued(witness.span_name(span))
            accounts[DEPENDENCY].add(index, gap.end - late_end, place, index)
    return accounts, *_summaries(accounts, ledger, len(np.unique(spans.launch)), max(1, len(profile.steps)))


def _queued(kernel: str) -> Message:
    return _("queued in time: {kernel}", kernel=kernel)


def _late_end(gap: Gap, ready: int, returned: int) -> int:
    """Return until when the host is to blame: the gap's start where the kernel was queued in time."""
    if ready <= gap.start:
        return gap.start
    known = min(gap.end, max(ready, returned))
    return gap.end if gap.end - known <= START_TOLERANCE else known


def _book(
    accounts: Accounts, window: Iterable[Charge], gap: int, witness: Witness, span: int, row: int
) -> None:
    for charge in window:
        if charge.delay is None:
            place = witness.of_launch(span, row, charge.start, charge.start + charge.nanoseconds)
            event = gap
        else:
            place = _place_of(charge.delay, witness)
            event = charge.delay.start
        accounts[charge.cause].add(gap, charge.nanoseconds, place, event)


def _place_of(delay: Delay, witness: Witness) -> str:
    if delay.place is None:
        of = witness.of_blocking if delay.cause == SYNCHRONIZATION else witness.of_loader
        delay.place = of(delay)
    return delay.place


def _summaries(accounts: Accounts, ledger: Ledger, launches: int, steps: int) -> tuple[Summaries, Summaries]:
    summaries: Summaries = {}
    notes: Summaries = {}
    if (late := accounts.get(LAUNCH)) is not None:
        mean = late.nanoseconds / len(late.gaps) / 1e3
        share = len(late.gaps) / launches if launches else 1.0
        counted = _(
            "{late} of the launches came late, {mean} µs idle before each",
            late=f"{share:.0%}",
            mean=f"{mean:,.1f}",
        )
        summaries[LAUNCH] = (counted,)
    if (queued := accounts.get(DEPENDENCY)) is not None:
        mean = queued.nanoseconds / len(queued.gaps) / 1e3
        summaries[DEPENDENCY] = (_("starts of kernels in the queue, {mean} µs each", mean=f"{mean:,.1f}"),)
    hidden = ledger.hidden_without_synchronisation
    if LOADER in accounts and hidden > WORTH_A_NOTE * accounts[LOADER].nanoseconds:
        would = _(
            "{time} of it would be hidden without the synchronisation before it",
            time=milliseconds(hidden / steps),
        )
        notes[LOADER] = (would,)
    return summaries, notes


def _on_cpu(profile: Profile, gaps: list[Gap], detail: Profile | None) -> Accounts:
    witness, of_loader = Witness(profile, None), Witness(profile, detail)
    host = profile.host
    threads = feeding_threads(profile) or frozenset(np.unique(host.thread).tolist())
    others = [
        Delay(
            int(host.start[row]),
            int(host.end[row]),
            COMMUNICATION,
            int(host.thread[row]),
            row,
            host.names[host.name[row]],
        )
        for row in collective_rows(host)
    ]
    delays = [*loader_delays(profile, threads), *others]
    ledger = Ledger(delays, 0)
    every = frozenset(delay.thread for delay in delays)
    main = min(threads, default=0)
    accounts: Accounts = defaultdict(_Account)
    for index, gap in enumerate(gaps):
        for charge in ledger.charge(gap.start, gap.end, every):
            end = charge.start + charge.nanoseconds
            if charge.delay is None:
                place = witness.of_python(main, charge.start, end) or _("Python between operators")
                accounts[LAUNCH].add(index, charge.nanoseconds, place, index)
            elif charge.cause == COMMUNICATION:
                accounts[COMMUNICATION].add(index, charge.nanoseconds, charge.delay.name, charge.delay.start)
            else:
                place = _place_of(charge.delay, of_loader)
                accounts[LOADER].add(index, charge.nanoseconds, place, charge.delay.start)
    return accounts


def _latency(profile: Profile, launches: dict[int, int]) -> int:
    """Return the least time from the start of a launch call to that of its kernel, robustly."""
    rows = np.array([launches.get(launch, -1) for launch in profile.spans.launch.tolist()], np.int64)
    alone = (rows >= 0) & ~profile.spans.in_graph
    if not alone.any():
        return 0
    waits = profile.spans.start[alone] - profile.host.start[rows[alone]]
    return int(np.clip(np.quantile(waits, LATENCY_QUANTILE), 0, MOST_LATENCY))


def _launch_bounds(profile: Profile, launches: dict[int, int]) -> Nanoseconds:
    """Return a moment by which each span was launched, also where its call was not recorded.

    What follows on its stream was launched later; ids count up, so that one below all recorded ids was
    launched before the recording began.
    """
    spans, never = profile.spans, np.iinfo(np.int64).max // 2
    rows = np.array([launches.get(launch, -1) for launch in spans.launch.tolist()], np.int64)
    bounds = np.full(len(spans), never, np.int64)
    bounds[rows >= 0] = profile.host.start[rows[rows >= 0]]
    if launches:
        earlier = (spans.launch >= 0) & (spans.launch < min(launches))
        bounds[earlier] = profile.host.start[list(launches.values())].min()
    for stream in np.unique(spans.stream):
        own = np.flatnonzero(spans.stream == stream)
        bounds[own] = np.minimum.accumulate(bounds[own][::-1])[::-1]
    return bounds


def _step_length(profile: Profile) -> int:
    if not profile.steps:
        return int(profile.spans.end.max(initial=0) - profile.spans.start.min(initial=0))
    return max(step.end - step.start for step in profile.steps)
