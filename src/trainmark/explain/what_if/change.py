"""One change to a training: what it is called, how it is made, and the step that it predicts."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from trainmark.explain.what_if.situation import COMMUNICATION, LAUNCH, Situation, StepPart

# Seconds in which an eager framework issues one kernel, where the host's own time is not known. An
# estimate: PyTorch's dispatcher, autograd and cudaLaunchKernel together.
ISSUE_SECONDS = {"pytorch": 6e-6}


# A tuned kernel's time as a multiple of its floor: bytes of its operands at 85 % of a copy's bandwidth. The
# statistics of a norm need the tensor once more: 8 passes in place of 5, forward and backward.
TUNED, TUNED_NORM = 1 / 0.85, 8 / 5 / 0.85


# A step with a larger share of launch gaps takes as long as the host does.
LEAST_WAITING = 0.05


class StepPrediction(NamedTuple):
    """Seconds of a step of as many samples as now, the arithmetic in one sentence, and its launch gaps."""

    seconds: float
    why: str
    launch_gaps: float = 0.0

    @property
    def waits_for_host(self) -> bool:
        return self.launch_gaps > LEAST_WAITING * self.seconds


class RebuiltStep(NamedTuple):
    """Seconds of a step, and how many of them the device waits for launches."""

    seconds: float
    launch_gaps: float

    def because(self, why: str) -> StepPrediction:
        return StepPrediction(self.seconds, why, self.launch_gaps)


def rebuilt(
    situation: Situation,
    alone: Mapping[str, float],
    issued: float = 1.0,
    idle: Mapping[str, float] | None = None,
) -> RebuiltStep:
    """Return the step with these times of classes and idle times by cause.

    `issued` is the share of the host's work to issue a step that is left. Overlapped time scales with the
    classes. Communication is hidden under computing: where that gets shorter, communication comes out by as
    large a share of what was hidden. On a GPU the host issues kernels while others run, so that kernels that
    get shorter make gaps longer.
    """
    computing = [part for part in situation.parts if part.name != COMMUNICATION]
    now = sum(part.alone for part in computing)
    then = sum(alone.get(part.name, part.alone) for part in computing)
    ratio = then / now if now else 1.0
    compute = situation.compute * ratio
    exposed = alone.get(COMMUNICATION, situation.exposed) + situation.hidden * (1 - ratio)
    communication = situation.part(COMMUNICATION)
    exposed = min(max(exposed, 0.0), communication.busy if communication else 0.0)
    causes = {**situation.idle, **(idle or {})}
    if LAUNCH not in (idle or {}):
        causes[LAUNCH] = launch_gaps(situation, compute + exposed, issued)
    return RebuiltStep(compute + exposed + sum(causes.values()), causes.get(LAUNCH, 0.0))


def tuned_seconds(part: StepPart) -> float:
    """Return the time of a class that memory bounds, were its kernels as good as any; never more than now."""
    if part.floor is None or not part.busy:
        return part.alone
    multiple = TUNED_NORM if part.name == "normalisation" else TUNED
    return part.alone * min(1.0, multiple * part.floor / part.busy)


def launch_gaps(situation: Situation, busy: float, issued: float) -> float:
    """Return how long the device waits for the host, with this busy time and share of the step to issue."""
    gaps = situation.idle_for(LAUNCH)
    if situation.device != "cuda":
        return gaps * issued  # the host is the device: nothing is issued ahead
    if situation.settings.cuda_graph:
        return gaps
    before = situation.compute + situation.exposed
    bound = gaps / (before + gaps) if gaps else 0.0
    longer = gaps * issued + bound * (before - busy)
    return max(0.0, longer, issue_seconds(situation) * issued - busy)


def issue_seconds(situation: Situation) -> float:
    """Return how long the host takes to issue a step: at most what the step now takes without waiting."""
    estimate = situation.launches * ISSUE_SECONDS.get(situation.settings.framework or "", 0.0)
    issue = situation.host if situation.host is not None else estimate
    return min(issue, situation.compute + situation.exposed + situation.idle_for(LAUNCH))


Overrides = Mapping[str, str | int | bool]


def _cannot_be_made(situation: Situation) -> Overrides | None:
    return None


class How(NamedTuple):
    """A line to type or to write, else what to do in words."""

    text: str
    is_line: bool


@dataclass(frozen=True)
class WhatIfChange:
    """`overrides` are the keys of a suite that make the change, and no other, to one of our workloads.

    Where there are none, `suggestion` may have some that make it together with something else.
    `lines` are what to write in a user's own program, by framework, some made for the situation; "" is for
    all others, which may have `words` instead.
    """

    name: str
    title: str
    predict: Callable[[Situation], StepPrediction | None]
    words: str = ""
    lines: Mapping[str, str | Callable[[Situation], str]] = field(default_factory=dict)
    overrides: Callable[[Situation], Overrides | None] = _cannot_be_made
    suggestion: Callable[[Situation], Overrides | None] = _cannot_be_made

    @property
    def can_be_made(self) -> bool:
        """Whether a suite can make it, in some case."""
        return self.overrides is not _cannot_be_made

    def how(self, situation: Situation) -> How:
        settings, overrides = situation.settings, self.overrides(situation) or self.suggestion(situation)
        if settings.command and overrides:
            words = (f"--set {key}={_written(value)}" for key, value in overrides.items())
            return How(" ".join([settings.command, *words]), is_line=True)
        own, line = (self._line(name, situation) for name in (settings.framework or "", ""))
        if own and settings.command:
            own = f"{own}  # no setting of {settings.workload} does it"
        line = own or line
        return How(line, is_line=True) if line else How(self.words, is_line=False)

    def _line(self, framework: str, situation: Situation) -> str:
        line = self.lines.get(framework, "")
        return line if isinstance(line, str) else line(situation)


def _written(value: str | int | bool) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def percent(share: float) -> str:
    return f"{100 * share:.0f} %" if share >= 0.0995 else f"{100 * share:.1f} %"


def milliseconds(seconds: float) -> str:
    """Write a time as sentences do: `12.3 ms`."""
    return f"{1e3 * seconds:.3g} ms"
