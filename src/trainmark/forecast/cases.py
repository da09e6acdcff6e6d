"""The cases that a run, or what was typed, gives a forecast to start from."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trainmark.base.errors import UserError
from trainmark.events import RunEnd, RunStart, stream
from trainmark.forecast.fabric import (
    EDR,
    ONE_DEVICE,
    FabricModel,
    Size,
    fabric_of_record,
    tells_between_nodes,
)
from trainmark.forecast.model import ForecastCase
from trainmark.forecast.step import GradientBucket, even_layers, fill_buckets, layers_of, measured_buckets
from trainmark.forecast.validation import relative_half_width
from trainmark.workloads import registry

if TYPE_CHECKING:
    from trainmark.measure.figure import Result
    from trainmark.measure.key import Key
    from trainmark.pages.label import Series
    from trainmark.store.run import RunFolder
    from trainmark.store.trial import TrialRecord
    from trainmark.workloads.declaration import Axes

FABRIC = "fabric.json"
# A 90th percentile of normal noise lies so many standard deviations above the median.
P90_DEVIATIONS = 1.2816


@dataclass(frozen=True)
class Asked:
    """What the command line says of the machine and the model; None is not said."""

    bandwidth: float | None
    latency: float | None
    intra_bandwidth: float | None
    algorithm: str
    model: str | None
    parameters: int | None
    gradient_bytes: int
    loader: float | None
    variation: float | None

    @property
    def another_model(self) -> bool:
        return bool(self.parameters or self.model)

    def buckets(self, workload: str | None, axes: Axes | None = None) -> tuple[GradientBucket, ...]:
        if self.parameters:
            return fill_buckets(even_layers(self.parameters), self.gradient_bytes)
        name = self.model or workload or registry.DEFAULT
        if (layers := layers_of(name, axes)) is None:
            raise UserError(
                f"the size of the model of '{name}' is not known: give its number of parameters with "
                "--parameters, or the folder of its workload with --model."
            )
        return fill_buckets(layers, self.gradient_bytes)

    def fabric(self, record: Mapping[str, Any], wide: bool) -> FabricModel:
        """What was typed goes before what was measured."""
        if wide and self.bandwidth is None and not tells_between_nodes(record):
            raise UserError(
                "the network between nodes is not known: give --bandwidth in bytes a second and --latency, "
                "or measure it with `trainmark fabric`."
            )
        recorded = fabric_of_record(record, EDR, self.algorithm)
        typed = {
            "bandwidth": self.bandwidth,
            "latency": self.latency,
            "intra_bandwidth": self.intra_bandwidth,
        }
        return replace(recorded, **{name: value for name, value in typed.items() if value is not None})


@dataclass(frozen=True)
class NamedCase:
    """A case under the name that a reader knows it by, with the sizes to forecast."""

    name: str
    unit: str
    case: ForecastCase
    sizes: tuple[Size, ...]


def typed_case(step: float, batch: float, sizes: Sequence[Size], asked: Asked) -> NamedCase:
    case = ForecastCase(
        steps={ONE_DEVICE: step},
        batch=batch,
        buckets=asked.buckets(None),
        fabric=asked.fabric({}, any(size.nodes > 1 for size in sizes)),
        algorithm=asked.algorithm,
        loader=asked.loader,
        loaded=asked.loader is not None,
        variation=asked.variation or 0.0,
    )
    return NamedCase(f"{1e3 * step:.4g} ms a step of {batch:g}", "samples", case, tuple(sizes))


def cases_of(run: RunFolder, sizes: Sequence[Size], asked: Asked) -> Iterator[NamedCase]:
    """One case for each series of the run that has a result of one device and a known batch."""
    from trainmark.pages.label import by_series
    from trainmark.store.files import read_json
    from trainmark.store.report import results_of

    record = read_json(run.path / FABRIC) if (run.path / FABRIC).exists() else {}
    if not isinstance(record, dict):
        raise UserError(f"{run.path / FABRIC} is not what `trainmark fabric` writes; measure it again.")
    any_case = False
    for group in by_series(results_of(run.records())):
        by_size = {Size(one.key.nodes, one.key.devices_per_node): one for one in group.results}
        if ONE_DEVICE in by_size and (batch := _batch(run, by_size[ONE_DEVICE], asked)):
            any_case = True
            yield _case(run, group, by_size, tuple(sizes) or _further(max(by_size)), asked, record, batch)
    if not any_case:
        raise UserError(
            f"{run.path.name} has no finished case of one device with a known batch, from which a forecast "
            "starts; run its suite with 1n1g among the topologies, or a program whose steps alone were seen "
            "with --samples-per-step."
        )


def _case(
    run: RunFolder,
    group: Series,
    by_size: Mapping[Size, Result],
    sizes: tuple[Size, ...],
    asked: Asked,
    record: Mapping[str, Any],
    batch: float,
) -> NamedCase:
    key, widest, one = group.key, by_size[max(by_size)], by_size[ONE_DEVICE].step_times
    case = ForecastCase(
        steps={size: batch * size.devices / result.throughput for size, result in by_size.items()},
        batch=batch,
        buckets=(() if asked.another_model else _reported_buckets(run, group, asked.gradient_bytes))
        or asked.buckets(key.workload, dict(key.axes)),
        fabric=asked.fabric(record, any(size.nodes > 1 for size in sizes)),
        algorithm=asked.algorithm,
        # What a node loads at most is known of images, which it decodes; tokens are only read.
        loaded=asked.loader is not None or (key.stored_data and key.data != "tokens"),
        loader=asked.loader,
        variation=(one.p90 / one.p50 - 1) / P90_DEVIATIONS if asked.variation is None else asked.variation,
        doubt=relative_half_width(widest.interval),
    )
    return NamedCase(group.name, widest.unit, case, sizes)


def _samples_per_item(key: Key, model: str | None) -> int:
    """Return the samples of one item of a device's batch: the tokens of a sequence; 1 for images.

    Of a workload in a folder they are known where `model` is that folder.
    """
    family = registry.families().get(key.workload)
    if family is None and model and registry.is_path(model):
        family = registry.find(model)
    known = family is not None and family.workload.name == key.workload
    return family.workload.samples_per_item(dict(key.axes)) if family and known else 1


def _batch(run: RunFolder, one: Result, asked: Asked) -> float | None:
    """Samples that a device takes in a step: of a program those that were counted in its middle trial."""
    if one.key.batch_per_device:
        return float(one.key.batch_per_device * _samples_per_item(one.key, asked.model))
    if one.unit == "steps":
        return None
    figures = [trial.figure for trial in _trials(run, one.key) if trial.figure is not None]
    counted = sorted(each.samples / (each.window.stop - each.window.first) for each in figures)
    return counted[len(counted) // 2] if counted else None


def _trials(run: RunFolder, *keys: Key) -> list[TrialRecord]:
    return [trial for trial in run.records() if trial.key in keys]


def _reported_buckets(run: RunFolder, group: Series, gradient_bytes: int) -> tuple[GradientBucket, ...]:
    """From rank 0 of the widest trial that told them; only ranks that exchange gradients have any.

    Of a program the size of what its optimizer trains is known, as one device has it.
    """
    trials = _trials(run, *(result.key for result in group.results))
    for trial in sorted(trials, key=lambda trial: -trial.key.devices):
        folder = run.trial(trial.spec.case, trial.spec.repeat).done
        facts = _told(folder / "events" / "rank0.jsonl")
        if trial.key.devices > 1 and (buckets := measured_buckets(facts)):
            return buckets
        size = facts.get("parameters") if trial.key.devices == 1 else None
        if trial.key.workload not in registry.families() and isinstance(size, int) and size > 0:
            return fill_buckets(even_layers(size), gradient_bytes)
    return ()


def _told(path: Path) -> dict[str, Any]:
    """All facts of a rank's events."""
    try:
        events = list(stream.read(path)) if path.exists() else []
    except (stream.StreamError, OSError):
        return {}
    return {k: v for event in events if isinstance(event, RunStart | RunEnd) for k, v in event.facts.items()}


def _further(widest: Size) -> tuple[Size, ...]:
    """Six doublings of the nodes beyond what was measured."""
    return tuple(Size(widest.nodes << more, widest.devices_per_node) for more in range(1, 7))
