"""When a measured program has run for long enough, and how it is ended then."""

import contextlib
import os
import statistics
import sys

from trainmark.probe import now

STOP = "TRAINMARK_STOP"
WARMUP = "TRAINMARK_WARMUP_STEPS"
TOLD = "told-to-end-rank{}"
AUTO = "auto"
FEWEST_STEPS, USUAL_STEPS, MOST_STEPS = 20, 100, 5000
LEAST_SECONDS, MOST_SECONDS = 10.0, 60.0
PACE_STEPS = 5
# Ranks that wait for each other in every step are never further apart than this.
RANKS_APART = 3
PATIENCE = 3


class StopRule:
    """Counts steps up to the limit: a number, none, or as many as give a figure (`auto`).

    For `auto` rank 0 takes the pace of the first steps after the warm-up and leaves the limit in a file, so
    that all ranks end after the same step.
    """

    def __init__(self):
        asked = os.environ.get(STOP, "")
        self._limit = int(asked) if asked.isdigit() else None
        self._waits = asked == AUTO
        self._warmup = int(os.environ.get(WARMUP, "0"))
        self._file = os.path.join(os.environ.get("TRAINMARK_EVENTS", ""), "stop-after")
        self._rank = 0
        self._steps = 0
        self._ends = []
        self._refusals = 0

    def begin(self, rank):
        """Know the rank; called before the first step."""
        self._rank = rank

    def reached(self):
        """Count a step; whether it was the last."""
        self._steps += 1
        if self._waits:
            self._look_for_limit()
        return self._limit is not None and self._steps >= self._limit

    def end_program(self):
        """Leave as a program does that has come to its end: `finally` and `atexit` run."""
        self._refusals += 1
        if self._refusals == 1:
            mark = os.path.join(os.path.dirname(self._file), TOLD.format(self._rank))
            # The harness waits for the end of the program, but not for ever.
            with contextlib.suppress(OSError), open(mark, "w") as file:
                file.write("told\n")
        if self._refusals > PATIENCE:  # a bare `except:` of the program holds SystemExit back
            sys.stdout.flush()
            os._exit(0)
        raise SystemExit(0)

    def _look_for_limit(self):
        if self._rank != 0:
            try:
                with open(self._file) as file:
                    self._limit, self._waits = int(file.read()), False
            except (OSError, ValueError):
                pass
            return
        if self._steps >= self._warmup:
            self._ends.append(now())
        if len(self._ends) > PACE_STEPS:
            pace = statistics.median(b - a for a, b in zip(self._ends, self._ends[1:]))
            self._limit = max(self._warmup + steps_for(pace), self._steps + RANKS_APART)
            self._waits = False
            with open(self._file + ".part", "w") as file:
                file.write(str(self._limit))
            os.replace(self._file + ".part", self._file)


def steps_for(pace):
    """Steps to measure at this many seconds a step: at least 100 and ten seconds, at most a minute."""
    wanted = max(USUAL_STEPS, LEAST_SECONDS / max(pace, 1e-9))
    affordable = max(FEWEST_STEPS, MOST_SECONDS / max(pace, 1e-9))
    return int(min(wanted, affordable, MOST_STEPS))
