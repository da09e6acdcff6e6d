"""Results: the trials of one case taken together, set against one device; how far to rely on them."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from functools import cached_property

from trainmark.measure import figure_doubts
from trainmark.measure.doubts import Doubt, DoubtCode, Severity
from trainmark.measure.figure import (
    Breakdown,
    ConventionUtilisation,
    Finish,
    Result,
    StepTimes,
    Straggler,
    TrialFigure,
    Utilisation,
)
from trainmark.measure.finish import finish_result, repeated_finish_doubts
from trainmark.measure.key import Key
from trainmark.measure.statistics import CONFIDENCE, median_count, median_interval, median_known, median_ratio
from trainmark.measure.utilisation import with_best_peaks

SYNTHETIC = "synthetic"


@dataclass(frozen=True)
class CaseTrial:
    """One trial of a case; `figure` is None where it failed, `environment` names the one it ran in."""

    key: Key
    figure: TrialFigure | None
    environment: str | None = None


@dataclass(frozen=True)
class _Case:
    figures: list[TrialFigure]
    throughputs: list[float]
    environments: int
    failed: int

    @cached_property
    def finishes(self) -> list[Finish]:
        return [figure.finish for figure in self.figures if figure.finish is not None]


def summarize(trials: Sequence[CaseTrial]) -> list[Result]:
    """One result for each case in order of appearance; cases that only failed are in `failed_cases`."""
    cases = {key: case for key, case in _cases(_with_best_peaks(trials)).items() if case.figures}
    synthetic = {_without_data(key): case for key, case in cases.items() if key.data == SYNTHETIC}
    return [
        _result(
            key,
            case,
            baseline=cases.get(_one_device(key)),
            synthetic=synthetic.get(_without_data(key)) if key.stored_data else None,
        )
        for key, case in cases.items()
    ]


def failed_cases(trials: Sequence[CaseTrial]) -> dict[Key, int]:
    """The cases of which no trial succeeded, and how many were tried."""
    return {key: case.failed for key, case in _cases(trials).items() if not case.figures}


def _with_best_peaks(trials: Sequence[CaseTrial]) -> list[CaseTrial]:
    figures = with_best_peaks([(trial.key, trial.figure) for trial in trials])
    return [replace(trial, figure=figure) for trial, figure in zip(trials, figures, strict=True)]


def _cases(trials: Sequence[CaseTrial]) -> dict[Key, _Case]:
    grouped: dict[Key, list[CaseTrial]] = {}
    for trial in trials:
        grouped.setdefault(trial.key, []).append(trial)
    return {key: _case(group) for key, group in grouped.items()}


def _case(group: list[CaseTrial]) -> _Case:
    finished = [(trial.figure, trial.environment) for trial in group if trial.figure is not None]
    return _Case(
        figures=[figure for figure, _ in finished],
        throughputs=[figure.throughput for figure, _ in finished],
        environments=len({environment for _, environment in finished if environment is not None}),
        failed=len(group) - len(finished),
    )


def _one_device(key: Key) -> Key:
    return replace(key, nodes=1, devices_per_node=1)


def _without_data(key: Key) -> Key:
    """What a case on stored data has in common with the same one on synthetic data."""
    return replace(key, data=None, recipe=None, loader=None, dataset=None, target=None)


def _result(key: Key, case: _Case, baseline: _Case | None, synthetic: _Case | None) -> Result:
    figures = case.figures
    of_synthetic = None if synthetic is None else median_ratio(case.throughputs, synthetic.throughputs)
    wait = median_known(figure.data_wait_share for figure in figures)
    speedup = None if baseline is None else median_ratio(case.throughputs, baseline.throughputs)
    efficiency = speedup and speedup.mapped(lambda ratio: ratio / key.devices)
    doubts = [
        *figure_doubts.trials_doubts(case.throughputs, case.failed, case.environments),
        *(figure_doubts.scaling_doubts(efficiency, key.devices) if efficiency and key.devices > 1 else ()),
        *repeated_finish_doubts(case.finishes),
    ]
    if synthetic is not None and of_synthetic is not None:
        medians = statistics.median(case.throughputs), statistics.median(synthetic.throughputs)
        doubts += figure_doubts.synthetic_doubts(of_synthetic, *medians, figures[0].unit, wait or 0.0)
    # What was measured against synthetic data says more than how long single steps waited.
    codes = {doubt.code for doubt in doubts}
    doubts += [
        doubt
        for doubt in figure_doubts.merged([figure.doubts for figure in figures], wait)
        if doubt.code not in codes
    ]
    return Result(
        key=key,
        throughput=statistics.median(case.throughputs),
        interval=median_interval(case.throughputs),
        n=len(figures),
        unit=figures[0].unit,
        trials=tuple(case.throughputs),
        speedup=speedup,
        efficiency=efficiency,
        step_times=_median_step_times([figure.step_times for figure in figures]),
        first_step_seconds=statistics.median(figure.first_step_seconds for figure in figures),
        warmup_steps=max(figure.window.first for figure in figures),
        memory_bytes=_most_known(figure.memory_bytes for figure in figures),
        data_wait_share=wait,
        samples_per_joule=median_known(figure.samples_per_joule for figure in figures),
        utilisation=_middle_utilisation(figure.utilisation for figure in figures),
        doubts=tuple(doubts),
        settling_steps=median_count(figure.settling_steps for figure in figures),
        breakdown=_middle_breakdown(figures),
        stragglers=_lasting_stragglers(figures),
        finish=finish_result(case.finishes, baseline.finishes if baseline else ()),
        of_synthetic=of_synthetic,
        memory_share=median_known(figure.memory_share for figure in figures),
        peak_bandwidth=median_known(figure.peak_bandwidth for figure in figures),
        step_source=figures[0].step_source,
        sample_source=figures[0].sample_source,
        pauses=figures[0].pauses,
        host_memory_bytes=_most_known(figure.host_memory_bytes for figure in figures),
        hardware_utilisation=_middle_utilisation(figure.hardware_utilisation for figure in figures),
        conventions=_middle_conventions(figures),
    )


def _most_known(values: Iterable[int | None]) -> int | None:
    return max((value for value in values if value is not None), default=None)


def _median_step_times(times: list[StepTimes]) -> StepTimes:
    """The median trial's value for each figure but the longest step, which is the longest of all."""
    return StepTimes(
        mean=statistics.median(t.mean for t in times),
        p50=statistics.median(t.p50 for t in times),
        p90=statistics.median(t.p90 for t in times),
        p99=statistics.median(t.p99 for t in times),
        longest=max(t.longest for t in times),
    )


def _middle_utilisation(values: Iterable[Utilisation | None]) -> Utilisation | None:
    """The median of one peak; of several, one trial's, the lower middle: value and peak stay together."""
    known = sorted((value for value in values if value is not None), key=lambda u: u.value)
    if not known:
        return None
    if len({(each.peak_flops, each.source) for each in known}) == 1:
        return replace(known[0], value=statistics.median(each.value for each in known))
    return known[(len(known) - 1) // 2]


def _middle_conventions(figures: Sequence[TrialFigure]) -> tuple[ConventionUtilisation, ...]:
    by_name: dict[str, list[Utilisation]] = {}
    for figure in figures:
        for convention in figure.conventions:
            by_name.setdefault(convention.name, []).append(convention.utilisation)
    middles = ((name, _middle_utilisation(values)) for name, values in by_name.items())
    return tuple(ConventionUtilisation(name, middle) for name, middle in middles if middle is not None)


def _middle_breakdown(figures: Sequence[TrialFigure]) -> Breakdown | None:
    """One trial's, that of the lower middle throughput: its shares must still add up."""
    pairs = [(figure.throughput, figure.breakdown) for figure in figures if figure.breakdown is not None]
    return sorted(pairs, key=lambda pair: pair[0])[(len(pairs) - 1) // 2][1] if pairs else None


def _lasting_stragglers(figures: Sequence[TrialFigure]) -> tuple[Straggler, ...]:
    """Those that half of the trials name at least, each as the trial of its middle cost has it."""
    named: dict[tuple[int | None, str | None], list[Straggler]] = {}
    for figure in figures:
        for straggler in figure.stragglers:
            named.setdefault((straggler.rank, straggler.node), []).append(straggler)
    lasting = [occurrences for occurrences in named.values() if 2 * len(occurrences) >= len(figures)]
    return tuple(
        sorted(occurrences, key=lambda s: s.cost)[(len(occurrences) - 1) // 2] for occurrences in lasting
    )


# An interval that reaches farther than this from the figure cannot carry the comparisons people make of it.
WIDE_INTERVAL = 0.05


class Reliability(str, Enum):
    """From the best to the worst; `no-figure` is of a run in which no trial ended well."""

    RELIABLE = "reliable"
    CAUTION = "caution"
    UNRELIABLE = "unreliable"
    NO_FIGURE = "no-figure"


WORST_FIRST = (Reliability.UNRELIABLE, Reliability.CAUTION, Reliability.RELIABLE)


@dataclass(frozen=True)
class ReliabilityVerdict:
    """How far one figure, or `concerned` of the `figures` of a run, can be relied on.

    `within` is the farther bound of the 95 % interval, relative to the figure: the widest of all figures, or
    None where one has no such interval. `reasons` are the doubts that decided, the gravest first.
    """

    reliability: Reliability
    within: float | None
    reasons: tuple[Doubt, ...]
    concerned: int = 1
    figures: int = 1


def result_verdict(result: Result) -> ReliabilityVerdict:
    """Return the verdict on one result: its gravest doubts decide, then the width of its interval."""
    within = half_width(result)
    severe = _of_severity(result.doubts, Severity.SEVERE)
    cautions = _of_severity(result.doubts, Severity.CAUTION)
    if severe:
        return ReliabilityVerdict(Reliability.UNRELIABLE, within, severe)
    if cautions or within is None or within > WIDE_INTERVAL:
        return ReliabilityVerdict(Reliability.CAUTION, within, cautions)
    return ReliabilityVerdict(Reliability.RELIABLE, within, ())


def run_verdict(results: Sequence[Result]) -> ReliabilityVerdict:
    """Return the verdict on a run: that of its least reliable figures, and how many these are."""
    verdicts = [result_verdict(result) for result in results]
    for reliability in WORST_FIRST:
        concerned = [verdict for verdict in verdicts if verdict.reliability is reliability]
        if concerned:
            widths = [verdict.within for verdict in concerned]
            known = [width for width in widths if width is not None]
            return ReliabilityVerdict(
                reliability,
                max(known) if len(known) == len(widths) else None,
                _gravest_of_each_code(doubt for verdict in concerned for doubt in verdict.reasons),
                len(concerned),
                len(verdicts),
            )
    return ReliabilityVerdict(Reliability.NO_FIGURE, None, (), 0, 0)


def half_width(result: Result) -> float | None:
    """Return the farther bound of the interval relative to the figure; None below 95 % confidence."""
    interval = result.interval
    if interval is None or interval.confidence < CONFIDENCE or not result.throughput > 0:
        return None
    return max(interval.high - result.throughput, result.throughput - interval.low) / result.throughput


def _of_severity(doubts: Iterable[Doubt], severity: Severity) -> tuple[Doubt, ...]:
    return _gravest_of_each_code(doubt for doubt in doubts if doubt.severity is severity)


def _gravest_of_each_code(doubts: Iterable[Doubt]) -> tuple[Doubt, ...]:
    """One of each code, that of the largest share of trials; the most widespread first."""
    gravest: dict[DoubtCode, Doubt] = {}
    for doubt in doubts:
        if doubt.code not in gravest or _share(doubt) > _share(gravest[doubt.code]):
            gravest[doubt.code] = doubt
    return tuple(sorted(gravest.values(), key=lambda doubt: -_share(doubt)))


def _share(doubt: Doubt) -> float:
    """The share of the trials that have it; one where it is of the result as a whole."""
    return doubt.trials / doubt.of if doubt.trials is not None and doubt.of else 1.0


def tight_enough(values: Sequence[float], half_width: float) -> bool:
    """Whether half the 95 % interval is at most `half_width` of the median; never before six trials."""
    interval = median_interval(values)
    if interval is None or interval.confidence < CONFIDENCE:
        return False
    return (interval.high - interval.low) / 2 <= half_width * statistics.median(values)
