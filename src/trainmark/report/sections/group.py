"""Results that differ only in topology belong together, and so do the trials of one case."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from trainmark.measure.figure import Result
from trainmark.measure.key import Key
from trainmark.pages import label
from trainmark.report.document import TrialLine

HEADLINES = 4


@dataclass(frozen=True)
class Group:
    """One scaling series: the same case from the fewest devices to the most."""

    name: str
    key: Key
    results: tuple[Result, ...]

    @property
    def scales(self) -> bool:
        return len({result.key.devices for result in self.results}) > 1


@dataclass(frozen=True)
class CaseTrials:
    """All trials of one case, with how often each outcome came up."""

    case: str
    trials: tuple[TrialLine, ...]
    outcomes: tuple[tuple[str, int], ...]
    commands: tuple[str, ...]


@dataclass(frozen=True)
class Failure:
    """Trials of one case that ended alike for the same reason."""

    case: str
    outcome: str
    detail: str
    repeats: tuple[int, ...]


def by_series(results: Sequence[Result]) -> tuple[Group, ...]:
    """Groups in the order in which they first appear."""
    members: dict[Key, list[Result]] = {}
    for result in results:
        members.setdefault(replace(result.key, nodes=1, devices_per_node=1), []).append(result)
    names = label.distinguishing(members)
    return tuple(
        Group(
            label.series(key, names),
            key,
            tuple(sorted(group, key=lambda result: (result.key.devices, result.key.nodes))),
        )
        for key, group in members.items()
    )


def headlines(groups: Sequence[Group]) -> tuple[tuple[Group, Result], ...]:
    """The few figures to read first: the widest of each series, or the widest few of an only series."""
    if len(groups) == 1:
        return tuple((groups[0], result) for result in groups[0].results[-HEADLINES:])
    widest = [(group, group.results[-1]) for group in groups]
    return tuple(sorted(widest, key=lambda pair: -pair[1].throughput)[:HEADLINES])


def by_case(trials: Iterable[TrialLine]) -> tuple[CaseTrials, ...]:
    members: dict[str, list[TrialLine]] = {}
    for trial in trials:
        members.setdefault(trial.case, []).append(trial)
    return tuple(
        CaseTrials(
            case,
            tuple(lines),
            tuple(Counter(line.outcome for line in lines).items()),
            tuple(dict.fromkeys(line.command for line in lines)),
        )
        for case, lines in members.items()
    )


def failures(trials: Iterable[TrialLine]) -> tuple[Failure, ...]:
    repeats: dict[tuple[str, str, str], list[int]] = {}
    for trial in trials:
        if trial.outcome != "ok":
            repeats.setdefault((trial.case, trial.outcome, trial.detail), []).append(trial.repeat)
    return tuple(Failure(*key, tuple(numbers)) for key, numbers in repeats.items())
