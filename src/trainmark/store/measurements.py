"""Measurements kept beside a run: `fabric.json` (links between ranks), `light.json` (reference rates)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict
from math import inf
from pathlib import Path
from typing import Any, TypeVar

from trainmark.base.typed_json import decode, encode
from trainmark.measure.fabric import (
    AllReduce,
    FabricMeasurement,
    Link,
    MessageTime,
    alpha_beta_model,
    bus_factor,
    slow_parts,
)
from trainmark.measure.utilisation import ReferenceRate
from trainmark.store.files import StoreError, read_json, write_json

FABRIC = "fabric.json"
FABRIC_SCHEMA = 1


def encode_fabric(fabric: FabricMeasurement) -> dict[str, Any]:
    """As kept and as `--json` prints it; what follows from the times stands beside them."""
    return {
        "schema": FABRIC_SCHEMA,
        "taken": fabric.taken,
        "device": fabric.device,
        "backend": fabric.backend,
        "together": fabric.together,
        "nodes": list(fabric.nodes),
        "links": [_link(link) for link in fabric.links],
        "allreduce": [each for reduced in fabric.all_reduces for each in _all_reduce(reduced)],
        "allreduce_fit": [_all_reduce_fit(reduced) for reduced in fabric.all_reduces],
        "verdicts": [
            {**asdict(slow), "times": slow.times, "message": slow.message}
            for slow in slow_parts(fabric.links)
        ],
        "nccl_tests": list(fabric.nccl_tests),
    }


def decode_fabric(record: Any) -> FabricMeasurement:
    """ValueError, LookupError, TypeError or ArithmeticError where it is no record of a fabric."""
    if record["schema"] != FABRIC_SCHEMA:
        raise ValueError(f"schema {record['schema']}, not {FABRIC_SCHEMA}")
    nodes = tuple(map(str, record["nodes"]))
    reduced: dict[tuple[int, int], list[MessageTime]] = {}
    for each in record["allreduce"]:
        reduced.setdefault((_count(each["ranks"]), _count(each["nodes"])), []).append(_point(each))
    return FabricMeasurement(
        taken=str(record["taken"]),
        device=str(record["device"]),
        backend=str(record["backend"]),
        together=bool(record["together"]),
        nodes=nodes,
        links=tuple(_link_of(each, nodes) for each in record["links"]),
        all_reduces=tuple(AllReduce(*place, tuple(points)) for place, points in reduced.items()),
        nccl_tests=tuple(_nccl_test_of(each) for each in record.get("nccl_tests", ())),
    )


def load_fabric(run: Path) -> FabricMeasurement | None:
    """That of a run's folder; None where none was measured."""
    return _kept(run / FABRIC, decode_fabric, "is no fabric of this version: {!r}; measure it again.")


T = TypeVar("T")


def _kept(path: Path, decoded: Callable[[Any], T], refusal: str) -> T | None:
    """Return what was kept in a file, None without one; StoreError where this version did not write it so."""
    if not path.exists():
        return None
    plain = read_json(path)
    try:
        return decoded(plain)
    except (ValueError, LookupError, TypeError, AttributeError, ArithmeticError) as error:
        raise StoreError(f"{path} {refusal.format(error)}") from error


def _link(link: Link) -> dict[str, Any]:
    return {
        "from": link.ranks[0],
        "to": link.ranks[1],
        "from_node": link.nodes[0],
        "to_node": link.nodes[1],
        "same_node": link.same_node,
        "latency_seconds": link.latency.seconds,
        "latency_low": link.latency.low,
        "latency_high": link.latency.high,
        "bytes_per_second": link.bytes_per_second,
        "points": [asdict(point) for point in link.points],
    }


def _all_reduce(reduced: AllReduce) -> list[dict[str, Any]]:
    place = {"ranks": reduced.ranks, "nodes": reduced.nodes}
    return [
        {**place, **asdict(point), "bus_bytes_per_second": reduced.bus_bytes_per_second(point)}
        for point in reduced.points
    ]


def _all_reduce_fit(reduced: AllReduce) -> dict[str, Any]:
    fitted = alpha_beta_model(reduced.points)
    rate = fitted.bytes_per_second
    return {
        "ranks": reduced.ranks,
        "nodes": reduced.nodes,
        "latency_seconds": fitted.latency_seconds,
        "bus_bytes_per_second": None if rate is None else bus_factor(reduced.ranks) * rate,
    }


def _link_of(record: Mapping[str, Any], nodes: Sequence[str]) -> Link:
    ranks = int(record["from"]), int(record["to"])
    if not 0 <= ranks[0] < ranks[1] < len(nodes) or not record["points"]:
        raise ValueError(f"a link of ranks {ranks[0]} and {ranks[1]} without an end or without a time")
    return Link(ranks, (nodes[ranks[0]], nodes[ranks[1]]), tuple(map(_point, record["points"])))


def _nccl_test_of(record: Mapping[str, Any]) -> dict[str, Any]:
    sizes = [
        {"bytes": int(each["bytes"])}
        | {name: float(each[name]) for name in ("seconds", "bus_bytes_per_second")}
        for each in record["sizes"]
    ]
    return {"node": str(record["node"]), "program": str(record["program"]), "sizes": sizes}


def _point(record: Mapping[str, Any]) -> MessageTime:
    point = MessageTime(
        _count(record["bytes"]), float(record["seconds"]), float(record["low"]), float(record["high"])
    )
    if not 0 < point.low <= point.seconds <= point.high < inf:
        raise ValueError(f"a time of {point.seconds} s within [{point.low}, {point.high}]")
    return point


def _count(value: Any) -> int:
    if int(value) < 1:
        raise ValueError(f"{value} is no count")
    return int(value)


REFERENCE_RATES = "light.json"
REFERENCE_RATES_SCHEMA = 1


def write_reference_rates(folder: Path, rates: Iterable[ReferenceRate]) -> None:
    """In place of what was kept there."""
    folder.mkdir(parents=True, exist_ok=True)
    write_json(
        folder / REFERENCE_RATES,
        {"schema": REFERENCE_RATES_SCHEMA, "yardsticks": [encode(each) for each in rates]},
    )


def read_reference_rates(folder: Path) -> tuple[ReferenceRate, ...]:
    """None of them where the fused step was never run."""
    refusal = "has no reference rates of this version: {!r}; remove it, run the fused step again."
    return _kept(folder / REFERENCE_RATES, _decode_reference_rates, refusal) or ()


def _decode_reference_rates(plain: Any) -> tuple[ReferenceRate, ...]:
    if plain["schema"] != REFERENCE_RATES_SCHEMA:
        raise ValueError(f"schema {plain['schema']}, not {REFERENCE_RATES_SCHEMA}")
    rates = tuple(decode(ReferenceRate, each) for each in plain["yardsticks"])
    for reference in rates:
        if not 0 < reference.rate < inf:
            raise ValueError(f"a rate of {reference.rate}")
    return rates
