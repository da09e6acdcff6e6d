"""The short names of cases: always framework, precision and batch, and whatever else tells them apart."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import fields

from trainmark.measure.key import Key

SOMETIMES = (
    "workload",
    "variant",
    "framework_version",
    "image_size",
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
    kept = tuple(keys)
    return tuple(name for name in SOMETIMES if _differ(kept, name))


def _differ(keys: tuple[Key, ...], name: str) -> bool:
    """Versions only where one framework has two: those of two frameworks always differ."""
    if name == "framework_version":
        return len({(key.framework, key.framework_version) for key in keys}) > len(
            {key.framework for key in keys}
        )
    return len({getattr(key, name) for key in keys}) > 1


def extras(key: Key, names: Iterable[str]) -> str:
    return " ".join(str(getattr(key, name)) for name in names if getattr(key, name) is not None)


def series(key: Key, names: Iterable[str] = ()) -> str:
    """A case without its topology: `pytorch amp/dynamic b256`."""
    return " ".join(filter(None, (framework(key), precision(key), batch(key), extras(key, names))))


def rate_unit(unit: str) -> str:
    return f"{unit}/s"


def facts(key: Key) -> str:
    """All that is known of a case and does not stand in its table."""
    named = ((field.name, getattr(key, field.name)) for field in fields(key) if field.name not in IN_TABLE)
    return " · ".join(f"{name.replace('_', ' ')} {value}" for name, value in named if value is not None)
