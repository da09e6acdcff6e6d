"""What a run has to say, read from its folder and set beside published results."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timezone
from typing import Any

from trainmark.base.secrets import scrub, scrub_text
from trainmark.logs.ledger import LedgerEntry, Standing, load_for, standing
from trainmark.measure.ab import BaselineContrast, contrasts
from trainmark.measure.cost import Price
from trainmark.measure.fabric import FabricMeasurement
from trainmark.measure.figure import Result
from trainmark.measure.key import Key
from trainmark.measure.result import CaseTrial, summarize
from trainmark.measure.utilisation import ReferenceRate
from trainmark.store.files import Damage
from trainmark.store.manifest import figure_numbers
from trainmark.store.measurements import FABRIC, REFERENCE_RATES, load_fabric, read_reference_rates
from trainmark.store.run import FACTS, NODES, RunFolder
from trainmark.store.series import Curve, SampleSeries, StepTrace, curves, device_samples, step_traces
from trainmark.store.trial import TrialRecord

CONFORMANCE = "conformance"


@dataclass(frozen=True)
class TrialLine:
    """One trial; `detail` is one line that says why it failed, or empty."""

    case: str
    repeat: int
    outcome: str
    throughput: float | None
    low: float | None
    high: float | None
    warmup_steps: int | None
    retries: int
    detail: str
    command: str


@dataclass(frozen=True)
class Conformance:
    """Whether a framework was found to train the same model as the others when the run started.

    `conformant` is None where it was not checked; `differs` says in words what does.
    """

    conformant: bool | None = None
    differs: tuple[str, ...] = ()
    checked: str | None = None

    @property
    def mark(self) -> str:
        """Its name in databases and style sheets: `conformant`, `not_conformant` or `not_checked`."""
        if self.conformant is None:
            return "not_checked"
        return "conformant" if self.conformant else "not_conformant"


NOT_CHECKED = Conformance()


@dataclass(frozen=True)
class RunReport:
    """All that is shown of a run; `environment` is nested plain JSON in named sections, None for "not found".

    `published` says of a result where it stands among the published ones (None: nothing is comparable),
    `standings` where among those of its own framework; `conformance` is that of its framework.
    """

    name: str
    about: str
    created: str
    suite: str
    version: str
    command: str
    results: tuple[Result, ...]
    trials: tuple[TrialLine, ...]
    skipped: tuple[tuple[str, str], ...]
    traces: tuple[StepTrace, ...]
    samples: tuple[SampleSeries, ...]
    environment: dict[str, Any]
    published: Mapping[Key, Standing | None] = field(default_factory=dict)
    standings: Mapping[Key, Standing] = field(default_factory=dict)
    conformance: Mapping[Key, Conformance] = field(default_factory=dict)
    fabric: FabricMeasurement | None = None
    curves: tuple[Curve, ...] = ()
    reference_rates: tuple[ReferenceRate, ...] = ()
    damaged: tuple[Damage, ...] = ()
    """Files of the run that could not be used."""
    keys: Mapping[str, Key] = field(default_factory=dict)
    """The key of each case that has a figure, by the name of its folder."""
    contrasts: tuple[BaselineContrast, ...] = ()
    price: Price | None = None
    """What the cost of each result is counted with."""


def report_of(run: RunFolder, price: Price | None = None) -> RunReport:
    info, records = run.info, run.records()
    results = results_of(records)
    entries = load_for(result.key for result in results)
    return RunReport(
        name=info.name,
        about=info.about,
        created=datetime.fromtimestamp(info.created, timezone.utc).isoformat(timespec="seconds"),
        suite=scrub_text(run.suite),
        version=info.version,
        command=scrub_text(info.command),
        results=results,
        trials=tuple(_line(record) for record in records),
        skipped=info.skipped,
        traces=tuple(step_traces(run, records)),
        samples=tuple(device_samples(run, records)),
        environment=scrub({**run.or_damaged(NODES, lambda: nodes_of(run.nodes), {}), **run.environment}),
        published={result.key: standing_of(result, entries) for result in results},
        standings=standings_of_frameworks(results, entries),
        conformance=run.or_damaged(FACTS, lambda: conformance_of(run.facts, records), {}),
        fabric=run.or_damaged(FABRIC, lambda: load_fabric(run.path), None),
        curves=tuple(curves(run, records)),
        reference_rates=run.or_damaged(REFERENCE_RATES, lambda: read_reference_rates(run.path), ()),
        keys={record.spec.case: record.key for record in records if record.figure},
        contrasts=contrasts(info.against, _rates(records)) if info.against else (),
        damaged=tuple(run.damaged.values()),
        price=price,
    )


def results_of(records: Iterable[TrialRecord]) -> tuple[Result, ...]:
    return tuple(summarize([CaseTrial(record.key, record.figure, record.environment) for record in records]))


def standings_of_frameworks(results: Iterable[Result], entries: Sequence[LedgerEntry]) -> dict[Key, Standing]:
    """Return where each result stands among the published ones of its own framework."""
    standings = {}
    for result in results:
        own = [entry for entry in entries if entry.row.framework == result.key.framework]
        if placed := standing_of(result, own):
            standings[result.key] = placed
    return standings


def conformance_of(facts: Mapping[str, Any], records: Iterable[TrialRecord]) -> dict[Key, Conformance]:
    """Return the conformance of each result, from the facts that the run noted of its cases."""
    return {record.key: conformance_in(facts.get(record.spec.case)) for record in records}


def conformance_in(facts: Any) -> Conformance:
    """Read the facts of a case; whatever is not there, or not understood, was not checked."""
    record = facts.get(CONFORMANCE) if isinstance(facts, Mapping) else None
    if not isinstance(record, Mapping) or not isinstance(record.get("conformant"), bool):
        return NOT_CHECKED
    differs, checked = record.get("differs"), record.get("checked")
    return Conformance(
        record["conformant"],
        tuple(map(str, differs)) if isinstance(differs, list | tuple) else (),
        None if checked is None else str(checked),
    )


def standing_of(result: Result, entries: Iterable[LedgerEntry]) -> Standing | None:
    return standing(result.key, result.throughput, entries, f"{result.unit}/s")


def _rates(records: Iterable[TrialRecord]) -> dict[str, dict[int, float]]:
    rates: dict[str, dict[int, float]] = defaultdict(dict)
    for record in records:
        if record.figure is not None:
            rates[record.spec.case][record.spec.repeat] = record.figure.throughput
    return rates


def _line(record: TrialRecord) -> TrialLine:
    figure = record.figure
    numbers = figure_numbers(figure)
    return TrialLine(
        case=record.spec.case,
        repeat=record.spec.repeat,
        outcome=record.outcome,
        throughput=numbers["throughput"],
        low=numbers["low"],
        high=numbers["high"],
        warmup_steps=figure.window.first if figure else None,
        retries=len(record.retries),
        detail=scrub_text(record.detail),
        command=scrub_text(record.spec.command),
    )


def nodes_of(record: Mapping[str, Any]) -> dict[str, Any]:
    """Return what each node said before the first trial as a section of the environment."""
    nodes = [node for node in record.get("nodes", ()) if node.get("facts")]
    return {"cluster": [_node(node["node"], node["facts"]) for node in nodes]} if nodes else {}


def _node(name: str, facts: Mapping[str, Any]) -> dict[str, Any]:
    host, gpus = facts["host"], facts["gpus"]
    return {
        "node": name,
        "gpus": len(gpus),
        "gpu": ", ".join(sorted({gpu["name"] for gpu in gpus})) or None,
        "driver": ", ".join(sorted({str(gpu.get("driver")) for gpu in gpus})) or None,
        "processor": host.get("processor"),
        "cpus": host["cpus"],
        "memory_bytes": host["memory_total"],
        "kernel": host["kernel"],
        "python": host["python"],
        "interface": facts["interface"],
        "address": facts["address"],
    }
