"""The short names of cases: always framework, precision and batch, and whatever else tells them apart."""

from __future__ import annotations

from collections.abc import Iterable

from trainmark.measure.key import Axes, Key
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
IN_TABLE = frozenset({"nodes", "devices_per_node", "batch_per_device"})


def framework(key: Key) -> str:
    return key.framework or key.workload


def precision(key: Key) -> str:
    """`fp32`, or `amp/dynamic` where a loss scale is in force."""
    name = key.precision or ""
    return name if key.loss_scale in (None, "none") else f"{name}/{key.loss_scale}"


def batch(key: Key) -> str:
    return "b?" if key.batch_per_device is None else f"b{key.batch_per_device}"


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
    values = {name: key.value(name) for name in names}
    own = dict(key.axes)
    return " ".join(
        axes(key.workload, ((name, value),)) if name in own else str(value)
        for name, value in values.items()
        if value is not None
    )


def series(key: Key, names: Iterable[str] = ()) -> str:
    """A case without its topology: `pytorch amp/dynamic b256`."""
    return " ".join(filter(None, (framework(key), precision(key), batch(key), extras(key, names))))


def axes(workload: str, values: Axes) -> str:
    """The axes of a case in the words of its workload: `224²`."""
    family = registry.families().get(workload)
    known = {axis.name: axis.label for axis in family.workload.axes} if family else {}
    return " ".join(known.get(name, f"{name} {{}}").format(value) for name, value in values)


def rate_unit(unit: str) -> str:
    return f"{unit}/s"


def facts(key: Key) -> str:
    """All that is known of a case and does not stand in its table."""
    named = ((name, value) for name, value in key.values().items() if name not in IN_TABLE)
    return " · ".join(f"{name.replace('_', ' ')} {value}" for name, value in named if value is not None)
