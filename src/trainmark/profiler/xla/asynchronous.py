"""Thunks of XLA on a CPU that go on in a pool of threads after their own event has ended."""

import bisect
import collections

# Of a thunk, after its successors where they ran in the same thread; releases before 0.5 have none.
END_MARK = "end: "
# Of a program: events that start thunks, and one that waits for the last of them.
EXECUTION = "ThunkExecutor::Execute"
# The work is counted once, with the thunk's own event.
WORK = ("flop", "traffic")
# The executor takes as long from one thunk to the next.
LEAST_GAP_NS = 10000

Thunk = collections.namedtuple("Thunk", "thread name start end args flow")


def asynchronous(thunks, marks, executions, thread):
    """Yield the time of programs in which no thunk's event runs, as that of the thunk that goes on.

    The event of a convolution or matrix product may end when the pool has it. A gap belongs to the last thunk
    before it that has FLOP and whose end is not marked yet; else to the last one that has not ended.
    """
    ordered = sorted(thunks, key=lambda thunk: (thunk.start, thunk.end))
    starts = [thunk.start for thunk in ordered]
    for begin, finish in _union(executions):
        own = ordered[bisect.bisect_left(starts, begin) : bisect.bisect_left(starts, finish)]
        pending = []
        busy_until = last = None
        for thunk in own:
            if busy_until is not None and thunk.start - busy_until > LEAST_GAP_NS:
                pending = [earlier for earlier in pending if marks.get(earlier.flow, finish) > busy_until]
                yield _later(_cause(pending) or last, thread, busy_until, thunk.start)
            busy_until = thunk.end if busy_until is None else max(busy_until, thunk.end)
            last = thunk
            pending.append(thunk)
        if busy_until is not None and finish - busy_until > LEAST_GAP_NS:
            yield _later(_cause(pending) or last, thread, busy_until, finish)


def _cause(pending):
    with_flop = [thunk for thunk in pending if thunk.args.get("flop")]
    return (with_flop or pending or [None])[-1]


def _later(thunk, thread, start, end):
    args = {key: value for key, value in thunk.args.items() if key not in WORK}
    return thunk._replace(thread=thread, start=start, end=end, args=args)


def _union(intervals):
    """Return intervals that do not overlap and cover the same time."""
    union = []
    for start, end in sorted(intervals):
        if union and start <= union[-1][1]:
            union[-1] = (union[-1][0], max(union[-1][1], end))
        else:
            union.append((start, end))
    return union
