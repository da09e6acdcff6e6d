"""The phases of a capture: steps without the profiler before, between and after its passes.

The first pass is tried again where a busy CPU disturbed it.
"""

UNPROFILED_STEPS = 5
WARMUP_STEPS = 2
# Starting a profiler and writing its trace stop the program for a while, in which a loader fills its queue:
# as many steps more are taken before those that count. Under the profiler they are recorded, not annotated.
SETTLING_STEPS, MOST_SETTLING_STEPS = 2, 40
MEMORY = "memory"


class Phase:
    """Steps that are alike: `lead` that nobody looks at, one whose end is the start, then `steps` that count.

    `profiler_pass` is None where no profiler runs.
    """

    def __init__(self, profiler_pass, lead, steps):
        self.profiler_pass, self.lead, self.steps = profiler_pass, lead, steps

    @property
    def total(self):
        return self.lead + 1 + self.steps


def unprofiled_phase(settling):
    return Phase(None, settling - 1, UNPROFILED_STEPS)


def pass_phases(name, steps, settling):
    """Return a pass and the unprofiled steps after it."""
    lead = WARMUP_STEPS + settling - SETTLING_STEPS
    return [Phase(name, lead, steps), unprofiled_phase(settling)]


def plan(backend, steps, settling):
    """Return the phases: unprofiled steps before, between and after the passes; one step for the memory."""
    phases = [unprofiled_phase(settling)]
    for name in backend.passes():
        phases += pass_phases(name, steps, settling)
    return phases + ([Phase(MEMORY, 0, 0)] if hasattr(backend, "start_memory") else [])


def as_many_on_every_rank(phases, steps, settling):
    """Add steps that nobody looks at, up to those of two passes and the memory.

    A profiler may be missing on one host alone, and ranks that train together must end together.
    """
    most = unprofiled_phase(settling).total + 1
    most += 2 * sum(phase.total for phase in pass_phases("", steps, settling))
    missing = most - sum(phase.total for phase in phases)
    return phases + ([Phase(None, missing - 1, 0)] if missing > 0 else [])


AGREES_WITHIN = 0.03
MOST_TRIES = 4


class Tries:
    """Records of one pass, each with the unprofiled steps before it and after it."""

    def __init__(self):
        self.records, self._beside = [], []

    def begin(self, record, before):
        self.records.append(record)
        self._beside.append([before])

    def end(self, after):
        """Take the steps after the last try, unless they are known."""
        if self._beside and len(self._beside[-1]) == 1:
            self._beside[-1].append(after)

    def is_disturbed(self):
        """Whether another try may agree better: all that there are took their steps otherwise."""
        works = all("error" not in record for record in self.records)
        few = 0 < len(self.records) < MOST_TRIES
        return works and few and self._difference(self._best()) > AGREES_WITHIN

    def best(self):
        """Return the record that agrees best, and the steps beside it."""
        return self.records[self._best()], self._beside[self._best()]

    def _best(self):
        return min(range(len(self.records)), key=self._difference)

    def _difference(self, number):
        seconds, beside = self.records[number].get("step_seconds"), self._beside[number]
        whole = seconds and len(beside) == 2 and all(beside)
        return difference(seconds, *beside) if whole else float("inf")


def difference(seconds, *beside):
    """Return by what share profiled steps differ from those before and from those after them, on average.

    Steps that were as slow only on one side, because something else ran, do not make them agree.
    """
    own = sum(seconds) / len(seconds)
    shares = [abs(own * len(series) / sum(series) - 1) for series in beside]
    return sum(shares) / len(shares)
