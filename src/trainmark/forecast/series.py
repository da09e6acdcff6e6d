"""Published series: rows of one source that differ only in their number of nodes and devices."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace

from trainmark.forecast.fabric import EDR, ONE_DEVICE, FabricModel, Size
from trainmark.forecast.model import ForecastCase
from trainmark.forecast.step import fill_buckets, layers_of, models
from trainmark.logs.ledger.entry import LedgerEntry, LedgerRow
from trainmark.workloads import registry

FITTED_DEVICES = 8
RATE = re.compile(r"([\d.]+) ?Gb/s")
# Of a source that does not say its batch; what the others have on the same device.
USUAL_BATCH = {"fp32": 128}
USUAL_BATCH_16_BIT = 256
# Eight devices of one node that give less than this share of eight, or more than eight, are held back by
# something that a model of communication does not know.
LEAST_EFFICIENCY = 0.7

# Added to the ledger after the model was chosen: it is tested on them, and not fitted.
UNSEEN_SOURCES = frozenset({"dlperf-bert"})


@dataclass(frozen=True)
class PublishedSeries:
    """`row` has what the rows share, `case` those of one node alone, `targets` the throughputs of several."""

    source: str
    row: LedgerRow
    case: ForecastCase
    targets: dict[Size, float]
    also_in: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        row = self.row
        words = (
            row.workload,
            row.framework,
            row.framework_version,
            "/".join(filter(None, (row.precision, row.loss_scale))),
            f"b{row.batch_per_device}" if row.batch_per_device else None,
            None if row.compiler == "none" else row.compiler,
            row.data,
            row.note,
        )
        return " ".join(filter(None, words))

    @property
    def fitted(self) -> str:
        return " ".join(str(size) for size in sorted(self.case.steps))

    @property
    def odd(self) -> bool:
        """By a rule on the rows of one node alone."""
        one, widest = self.case.steps[ONE_DEVICE], self.case.steps[max(self.case.steps)]
        return not LEAST_EFFICIENCY <= one / widest <= 1


def published_series(entries: Iterable[LedgerEntry], unseen: bool = False) -> tuple[PublishedSeries, ...]:
    """Every series with one device, more on the same node, and several nodes; copies of one are one.

    Those of the sources that the model has not seen come only where they are asked for, and then alone.
    """
    known = models()
    grouped: dict[tuple[str, LedgerRow], dict[Size, float]] = {}
    for entry in entries:
        row = entry.row
        if (entry.source in UNSEEN_SOURCES) is not unseen:
            continue
        if row.throughput and row.nodes and row.devices_per_node and row.workload in known:
            sizes = grouped.setdefault((entry.source, _settings(row)), {})
            sizes[Size(row.nodes, row.devices_per_node)] = row.throughput
    distinct: list[PublishedSeries] = []
    for (source, row), rates in grouped.items():
        series = _series(source, row, rates)
        if series is None:
            continue
        twin = next((each for each in distinct if _copies(each, series)), None)
        if twin is None:
            distinct.append(series)
        else:
            distinct[distinct.index(twin)] = replace(twin, also_in=(*twin.also_in, source))
    return tuple(distinct)


def _series(source: str, row: LedgerRow, rates: dict[Size, float]) -> PublishedSeries | None:
    batch = row.batch_per_device or USUAL_BATCH.get(row.precision or "", USUAL_BATCH_16_BIT)
    steps = {
        size: batch * size.devices / rate
        for size, rate in rates.items()
        if size.nodes == 1 and size.devices <= FITTED_DEVICES
    }
    targets = {size: rate for size, rate in sorted(rates.items()) if size.nodes > 1}
    if ONE_DEVICE not in steps or len(steps) < 2 or not targets:
        return None
    case = ForecastCase(
        steps=steps,
        batch=batch,
        buckets=fill_buckets(layers_of(row.workload) or ()),
        fabric=_fabric(row.interconnect),
        loaded=_has_datasets(row.workload) and row.data != "synthetic",
    )
    return PublishedSeries(source, row, case, targets)


def _has_datasets(workload: str) -> bool:
    family = registry.families().get(workload)
    return family is not None and bool(family.workload.datasets)


def _settings(row: LedgerRow) -> LedgerRow:
    """The row without what may change with the size: figures, and what the printed runs were."""
    return replace(
        row,
        nodes=None,
        devices_per_node=None,
        throughput=None,
        speedup=None,
        memory_mb=None,
        time_to_train_s=None,
        top1=None,
        average=None,
        runs=(),
    )


def _copies(one: PublishedSeries, other: PublishedSeries) -> bool:
    """The same figures at several nodes: one report quotes the other."""
    return one.row.framework == other.row.framework and one.targets == other.targets


def _fabric(interconnect: str | None) -> FabricModel:
    """At the rate that the source states; one that states none is taken to have 100 Gb/s too."""
    match = RATE.search(interconnect or "")
    return replace(EDR, bandwidth=float(match[1]) * 1e9 / 8) if match else EDR
