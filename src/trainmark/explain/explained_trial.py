"""The explanation of a profiled trial or of a trace: made once, kept beside the run, read again."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from trainmark.api.shown import Shown
from trainmark.base.errors import UserError
from trainmark.base.typed_json import encode
from trainmark.events import DeviceSample, stream
from trainmark.explain import as_json, profile_folder
from trainmark.explain.advice import AdviceEvidence, diagnose
from trainmark.explain.analysis import AnalyzedStep, TrialFacts, captured_trace, explain
from trainmark.explain.breakdown import BANDWIDTH
from trainmark.explain.explanation import Explanation, MeasuredPeaks
from trainmark.explain.kernel_classes import is_compiled
from trainmark.explain.operator_cost import Work
from trainmark.explain.page import explanation_page
from trainmark.explain.profile import Profile
from trainmark.explain.profile_folder import Captured
from trainmark.explain.profiled_trial import EXPLAIN, ProfiledTrial, explain_folder
from trainmark.explain.ranks import link_bandwidth
from trainmark.explain.step_work import of_case
from trainmark.explain.what_if.changes import predict
from trainmark.explain.what_if.record import known_record
from trainmark.explain.what_if.situation import (
    DatasheetPeaks,
    Situation,
    TrainingSettings,
    host_seconds,
    situation_of,
)
from trainmark.machine.devices import Datasheet, datasheets, known_datasheet
from trainmark.measure.doubts import Severity
from trainmark.measure.figure import TrialFigure
from trainmark.store.files import StoreError, decoded, read_object, write_json
from trainmark.store.measurements import load_fabric
from trainmark.store.run import RunFolder
from trainmark.store.trial import SAMPLES
from trainmark.suite.model import Case, Command
from trainmark.view.blocks import Page
from trainmark.view.catalogue import messages_of, with_messages
from trainmark.view.message import _

# What a step is asked to run on instead, where the device at hand is another one.
COMPARED = ("A100 80GB SXM", "H100 SXM", "H200 SXM", "B200")


def settings_of(case: Case, command: str | None = None, framework: str | None = None) -> TrainingSettings:
    """Return how a settled case trains; `command` runs it as it is, `framework` is what its profile names."""
    own = isinstance(case.workload, Command)
    return TrainingSettings(
        workload=None if own else case.workload_name,
        framework=case.framework or framework,
        precision=case.precision,
        layout=case.layout,
        compiler=case.compiler,
        cuda_graph=case.cuda_graph is True,
        engine=case.engine,
        batch=case.batch_per_device,
        data=case.data,
        workers=case.workers,
        optimizer=_optimizer(case),
        compiles_update=_compiles_update(case),
        world_size=case.topology.devices,
        command=None if own else command,
    )


def _optimizer(case: Case) -> str | None:
    if isinstance(case.workload, Command):
        return None
    declared = case.family.workload
    wanted = case.recipe or declared.standard_recipe
    return next((recipe.optimizer for recipe in declared.recipes() if recipe.name == wanted), None)


def _compiles_update(case: Case) -> bool:
    """Whether `compile` makes kernels of the update too; a sharded one is the framework's own optimiser."""
    if isinstance(case.workload, Command) or is_sharded(case) or case.engine not in (None, "stock"):
        return False
    return case.framework in case.family.workload.compiles_update


def is_sharded(case: Case) -> bool:
    return dict(case.axes).get("sharding") not in (None, "none")


def parameters_of(case: Case) -> int | None:
    """Return the parameters of the case's model, as its family counts them."""
    if isinstance(case.workload, Command) or case.family.workload.layers is None:
        return None
    axes = {**case.family.workload.defaults, **dict(case.axes)}
    return sum(layer.parameters for layer in case.family.workload.layers(axes))


def case_situation(
    explanation: Explanation,
    case: Case,
    device_name: str,
    command: str | None = None,
    *,
    framework: str | None = None,
    product_peaks: Mapping[str, float] | None = None,
    device_memory: int | None = None,
    host: float | None = None,
    clock: float | None = None,
) -> Situation:
    """Return the situation of a case on a device, with the datasheets of the ones to compare with."""
    sheet = known_datasheet(device_name)
    others = [other for other in datasheets() if sheet and other.title in COMPARED and other != sheet]
    return situation_of(
        explanation,
        settings_of(case, command, framework),
        "cuda" if case.device == "cuda" else "cpu",
        product_peaks=product_peaks,
        datasheet=device_peaks(sheet) if sheet else None,
        others=tuple(map(device_peaks, others)),
        parameters=parameters_of(case),
        device_memory=device_memory,
        host=host,
        clock=clock,
    )


def device_peaks(sheet: Datasheet) -> DatasheetPeaks:
    """Return a datasheet as what-ifs take it."""
    return DatasheetPeaks(sheet.title, sheet.flops, sheet.bandwidth)


OPTIMIZER_STEP = re.compile(r"Optimizer\.step#(\w+)\.step")
GRAPH_LAUNCH = re.compile(r"(cuda|cu)GraphLaunch")
EXPLANATION, TRACE = "explanation.json", "trace.json.gz"


@dataclass(frozen=True)
class Explained(Shown):
    """An explanation; `folder` is where it is stored, None for a trace from elsewhere.

    `case` and `situation` are there right after the trial was taken, for changes to be made.
    """

    explanation: Explanation
    folder: Path | None = None
    run: RunFolder | None = None
    case: Case | None = None
    situation: Situation | None = None

    def page(self) -> Page:
        return explanation_page(self.explanation, TRACE if self.folder else "")

    def to_dict(self) -> dict[str, Any]:
        return as_json.tree(self.explanation)


def stored_explanation(run: RunFolder, case: str | None) -> Explained | None:
    """Return what was explained before of a case, or of the only case that was."""
    if case is None:
        known = sorted((run.path / EXPLAIN).glob(f"*/{EXPLANATION}"))
        if len(known) != 1:
            return None
        case = known[0].parent.name
    folder = explain_folder(run.path, case)
    path = folder / EXPLANATION
    if not path.is_file():
        return None
    return Explained(decoded(Explanation, with_messages(read_object(path)), path), folder, run)


def explain_trial(run: RunFolder, trial: ProfiledTrial) -> Explained:
    """Explain a profiled trial with what-ifs and advice, and keep it with a trace beside it."""
    captured = profile_folder.read(trial.profile)
    taken = explain(captured, trial_facts(run, trial, captured))
    peaks = measured_peaks(captured)
    device = trial.record.key.device or ""
    clock = taken.clocks.clock_share if taken.clocks else None
    own_command = f"trainmark run {run.info.suite}" if not isinstance(trial.case.workload, Command) else None
    situation = case_situation(
        taken.explanation,
        trial.case,
        device,
        own_command,
        framework=captured.ranks[0].framework or None,
        product_peaks=peaks,
        host=issue_seconds(captured, taken.profile),
        clock=clock,
    )
    situation = with_seen(situation, captured)
    explanation = with_changes(taken, situation)
    folder = explain_folder(run.path, trial.case.slug)
    folder.mkdir(parents=True, exist_ok=True)
    keep_explanation(folder, explanation)
    taken.write_trace(folder / TRACE)
    return Explained(explanation, folder, run, trial.case, situation)


def explain_trace(path: Path) -> Explained:
    """Explain a trace file, or a folder of profiles, of which nothing else is known."""
    captured = profile_folder.read(path) if path.is_dir() else captured_trace(path)
    peaks = measured_peaks(captured)
    facts = TrialFacts(path.name, peaks=MeasuredPeaks(bandwidth=peaks.get(BANDWIDTH)), product_peaks=peaks)
    taken = explain(captured, facts)
    first = captured.ranks[0]
    settings = TrainingSettings(framework=first.framework or None, world_size=first.world_size)
    sheet = known_datasheet(first.device_name or "")
    situation = situation_of(
        taken.explanation,
        settings,
        first.device,
        product_peaks=peaks,
        datasheet=device_peaks(sheet) if sheet else None,
    )
    return Explained(with_changes(taken, with_seen(situation, captured)))


def with_seen(situation: Situation, captured: Captured) -> Situation:
    """Add what nobody said and a profile shows: optimizer, compiler, graphs, the host's cores."""
    first, settings = captured.ranks[0], situation.settings
    profiles = [profile for profile in (first.timing, first.detail) if profile is not None]
    names = {name for profile in profiles for name in (*profile.host.names, *profile.spans.names)}
    optimizers = {match[1] for name in names if (match := OPTIMIZER_STEP.match(name))}
    own = next(iter(optimizers)) if len(optimizers) == 1 else None
    compiled = "compile" if settings.framework == "pytorch" and any(map(is_compiled, names)) else None
    settings = replace(
        settings,
        optimizer=settings.optimizer or own,
        compiler=settings.compiler or compiled,
        cuda_graph=settings.cuda_graph or any(map(GRAPH_LAUNCH.match, names)),
    )
    facts = first.manifest.get("facts")
    cores = facts.get("cores") if isinstance(facts, Mapping) else None
    return replace(situation, settings=settings, cores=cores if isinstance(cores, int) else None)


def keep_explanation(folder: Path, explanation: Explanation) -> None:
    """Write it with its messages, which another language is made from."""
    write_json(folder / EXPLANATION, encode(explanation) | {"messages": messages_of(explanation)})


def with_changes(taken: AnalyzedStep, situation: Situation) -> Explanation:
    """Add what-ifs and advice; where shares are refused there is nothing to make them from."""
    explanation = taken.explanation
    if explanation.agreement.refusal is not None:
        return explanation
    what_ifs = predict(situation, known_record())
    clocks = taken.clocks.sentence if taken.clocks else None
    evidence = AdviceEvidence(situation, what_ifs, explanation.idle, explanation.buckets, clocks)
    return replace(explanation, what_ifs=what_ifs, advice=diagnose(evidence))


def trial_facts(run: RunFolder, trial: ProfiledTrial, captured: Captured) -> TrialFacts:
    """Return what the trial's record, its samples and the machine's records tell beside the profiles."""
    case, record = trial.case, trial.record
    figure, measured = record.figure, measured_peaks(captured)
    samples = _samples_of_step(figure)
    doubts = sorted(figure.doubts, key=lambda doubt: doubt.severity is not Severity.SEVERE) if figure else []
    return TrialFacts(
        title=case.slug,
        unit=figure.unit if figure else "samples",
        samples=samples,
        step_seconds=figure.step_times.mean if figure else None,
        framework=" ".join(filter(None, (record.key.framework, record.key.framework_version))) or None,
        device=record.key.device,
        peaks=_peaks(run, case, figure, measured),
        product_peaks=measured,
        work=_declared_work(case, samples),
        device_samples=_device_samples(trial.folder / SAMPLES),
        nodes=[rank.node for rank in figure.breakdown.ranks] if figure and figure.breakdown else (),
        sharded=is_sharded(case),
        notes=[
            _("Of the measured steps: {note}", note=doubt.text)
            for doubt in doubts
            if doubt.severity is Severity.NOTE
        ],
        doubts=[doubt.text for doubt in doubts if doubt.severity is not Severity.NOTE],
        rate=figure.throughput if figure else None,
    )


def measured_peaks(captured: Captured) -> dict[str, float]:
    """Return FLOP/s by precision, and the bandwidth, as the profiled program measured them at its end."""
    facts = captured.ranks[0].manifest.get("facts")
    peaks: Any = facts.get("peaks") if isinstance(facts, Mapping) else None
    if not isinstance(peaks, Mapping):
        return {}
    return {str(name): float(value) for name, value in peaks.items() if isinstance(value, int | float)}


def issue_seconds(captured: Captured, profile: Profile) -> float | None:
    """Return how long the host takes to issue a step, the less of two that are both too long.

    Timed without the profiler the host also waits: where the program reads a value, and for room in the
    queue, which a step of a thousand launches fills. A profile tells waiting apart, but lengthens launches.
    """
    known = (measured_issue_seconds(captured), host_seconds(profile))
    return min((seconds for seconds in known if seconds is not None), default=None)


def measured_issue_seconds(captured: Captured) -> float | None:
    """Return the least that the host took for a step that it issued to an idle device, without the profiler.

    The least: CUPTI, which stays attached after the first pass, and whatever else runs only make it longer.
    """
    seconds = captured.ranks[0].manifest.get("host_step_seconds")
    known = [second for second in seconds if isinstance(second, float)] if isinstance(seconds, list) else []
    return min(known) if known and captured.ranks[0].device == "cuda" else None


def _peaks(
    run: RunFolder, case: Case, figure: TrialFigure | None, measured: Mapping[str, float]
) -> MeasuredPeaks:
    """Take the best that was measured on the device, after the profile or at the end of the trial."""
    utilisation = figure.utilisation if figure else None
    per_device = utilisation.peak_flops / case.topology.devices if utilisation else None
    return MeasuredPeaks(
        flops=_best(measured.get(case.precision or ""), per_device),
        bandwidth=_best(measured.get(BANDWIDTH), figure.peak_bandwidth if figure else None),
        link=_link(run, case),
    )


def _best(*peaks: float | None) -> float | None:
    return max((peak for peak in peaks if peak), default=None)


def _link(run: RunFolder, case: Case) -> float | None:
    """Return the bandwidth that `trainmark fabric` measured over these nodes; None where it did not."""
    if case.topology.devices == 1:
        return None
    try:
        fabric = load_fabric(run.path)
    except (StoreError, UserError, OSError):
        return None
    return link_bandwidth(fabric, case.topology.devices) if fabric else None


def _samples_of_step(figure: TrialFigure | None) -> float | None:
    if figure is None or figure.step_times is None:
        return None
    return round(figure.throughput * figure.step_times.mean, 3)


def _declared_work(case: Case, samples: float | None) -> dict[str, Work]:
    """Return one rank's part of a step as the family declares it; nothing for a user's own program."""
    if isinstance(case.workload, Command) or samples is None:
        return {}
    workload = case.family.workload
    axes = {**workload.defaults, **dict(case.axes)}
    per_rank = samples / case.topology.devices
    return of_case(workload, axes, per_rank, case.engine or "stock", case.cuda_graph is True)


def _device_samples(path: Path) -> list[DeviceSample]:
    if not path.exists():
        return []
    return [event for event in stream.read(path) if isinstance(event, DeviceSample)]
