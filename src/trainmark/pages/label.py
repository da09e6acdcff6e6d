"""The short names of cases: always framework, precision and batch, and whatever else tells them apart."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from trainmark.measure.figure import Result
from trainmark.measure.key import Axes, Key
from trainmark.pages.facts import fact_name
from trainmark.view.message import Message, joined
from trainmark.workloads import registry

DISTINGUISHING_FIELDS = (
    "workload",
    "variant",
    "framework_version",
    "layout",
    "compiler",
    "data",
    "dataset",
    "loader",
    "recipe",
    "target",
    "device",
    "threads",
)
AXES_AFTER = DISTINGUISHING_FIELDS.index("framework_version") + 1
FRAMEWORK_TITLES = {
    "jax": "JAX",
    "mindspore": "MindSpore",
    "mxnet": "MXNet",
    "oneflow": "OneFlow",
    "paddle": "PaddlePaddle",
    "pytorch": "PyTorch",
    "tensorflow": "TensorFlow",
}
IN_TABLE = frozenset({"nodes", "devices_per_node", "batch_per_device"})


def framework(key: Key) -> str:
    return key.framework or key.workload


def workload_title(name: str) -> str:
    """Return the title that a family declares; the name of a user's own program."""
    family = registry.families().get(name)
    return family.workload.title if family else name


def framework_title(key: Key) -> str:
    """Return `PyTorch 2.13` for pytorch of 2.13.0+cu130."""
    name = FRAMEWORK_TITLES.get(key.framework or "", framework(key))
    version = (key.framework_version or "").partition("+")[0]
    return " ".join(filter(None, (name, re.sub(r"^(\d+\.\d+)\.0$", r"\1", version))))


def precision(key: Key) -> str:
    """`fp32`, or `amp/dynamic` where a loss scale is in force."""
    name = key.precision or ""
    return name if key.loss_scale in (None, "none") else f"{name}/{key.loss_scale}"


def batch(key: Key) -> str:
    if key.batch_per_device is None:
        return "b?" if key.framework else ""  # nobody expects to know it of one's own program
    return f"b{key.batch_per_device}"


def distinguishing(keys: Iterable[Key]) -> tuple[str, ...]:
    """The fields beyond the usual ones in which these keys differ."""
    cases = tuple(keys)
    axes = dict.fromkeys(name for key in cases for name, _ in key.axes)
    first, after = DISTINGUISHING_FIELDS[:AXES_AFTER], DISTINGUISHING_FIELDS[AXES_AFTER:]
    return tuple(name for name in (*first, *axes, *after) if _differ(cases, name))


def _differ(keys: tuple[Key, ...], name: str) -> bool:
    """Versions only where one framework has two: those of two frameworks always differ."""
    if name == "framework_version":
        return len({(key.framework, key.framework_version) for key in keys}) > len(
            {key.framework for key in keys}
        )
    return len({key.value(name) for key in keys}) > 1


def extras(key: Key, names: Iterable[str]) -> str:
    """The values of these fields and axes, an axis in the words of its workload."""
    # A user's own program goes by the name of its workload already.
    values = {name: key.value(name) for name in names if name != "workload" or key.framework}
    own = dict(key.axes)
    words = (
        axes(key.workload, ((name, value),)) if name in own else str(value)
        for name, value in values.items()
        if value is not None
    )
    return " ".join(filter(None, words))


def series(key: Key, names: Iterable[str] = ()) -> str:
    """A case without its topology: `pytorch amp/dynamic b256`."""
    return " ".join(filter(None, (framework(key), precision(key), batch(key), extras(key, names))))


def axes(workload: str, values: Axes) -> str:
    """The axes of a case in the words of its workload: `224²`."""
    family = registry.families().get(workload)
    known = {axis.name: axis for axis in family.workload.axes} if family else {}
    words = (known[name].shown(value) if name in known else f"{name} {value}" for name, value in values)
    return " ".join(filter(None, words))


def rate_unit(unit: str) -> str:
    return f"{unit}/s"


def facts(key: Key) -> Message:
    """All that is known of a case and does not stand in its table."""
    return _facts(key.values())


def shared_facts(keys: Sequence[Key]) -> Message:
    """All that is known of every one of these cases and the same in all."""
    first = keys[0].values() if keys else {}
    return _facts(
        {name: value for name, value in first.items() if all(key.value(name) == value for key in keys)}
    )


def _facts(values: Mapping[str, object]) -> Message:
    named = {name: value for name, value in values.items() if name not in IN_TABLE and value is not None}
    return joined([joined([fact_name(name), str(value)], " ") for name, value in named.items()], " · ")


@dataclass(frozen=True)
class Series:
    """Results that differ in topology alone, from the fewest devices to the most."""

    name: str
    key: Key
    results: tuple[Result, ...]

    @property
    def scales(self) -> bool:
        return len({result.key.devices for result in self.results}) > 1

    def case(self, result: Result) -> str:
        return f"{self.name} {result.key.topology}"


def by_series(results: Sequence[Result]) -> tuple[Series, ...]:
    """Return the series in the order in which they first appear."""
    members: dict[Key, list[Result]] = {}
    for result in results:
        members.setdefault(replace(result.key, nodes=1, devices_per_node=1), []).append(result)
    names = distinguishing(members)
    return tuple(
        Series(
            series(key, names), key, tuple(sorted(own, key=lambda each: (each.key.devices, each.key.nodes)))
        )
        for key, own in members.items()
    )


def cases(results: Sequence[Result]) -> list[tuple[str, Result]]:
    """Return each result under the name of its case, series by series."""
    return [(group.case(result), result) for group in by_series(results) for result in group.results]


HEADLINES = 4


def headlines(groups: Sequence[Series]) -> tuple[tuple[Series, Result], ...]:
    """Return the few figures to read first: the widest of each series, or the widest few of an only one."""
    if len(groups) == 1:
        return tuple((groups[0], result) for result in groups[0].results[-HEADLINES:])
    widest = [(group, group.results[-1]) for group in groups]
    return tuple(sorted(widest, key=lambda pair: -pair[1].throughput)[:HEADLINES])
