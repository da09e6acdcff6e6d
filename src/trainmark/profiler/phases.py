"""The phases of a capture: steps without the profiler before, between and after its passes."""

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
