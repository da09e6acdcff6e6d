"""`light.json`: the yardsticks of devices, kept for a machine, and beside each run that is held to them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict
from math import inf
from pathlib import Path
from typing import Any

from trainmark.measure.light import Yardstick
from trainmark.store.files import StoreError, read_json, write_json

LIGHT = "light.json"
SCHEMA = 1


def keep_light(folder: Path, yardsticks: Iterable[Yardstick]) -> None:
    """In place of what was kept there."""
    folder.mkdir(parents=True, exist_ok=True)
    write_json(folder / LIGHT, {"schema": SCHEMA, "yardsticks": [asdict(each) for each in yardsticks]})


def kept_light(folder: Path) -> tuple[Yardstick, ...]:
    """None of them where the fused step was never run."""
    path = folder / LIGHT
    if not path.exists():
        return ()
    try:
        return _from_json(read_json(path))
    except StoreError:
        raise
    except (ValueError, LookupError, TypeError, ArithmeticError) as error:
        raise StoreError(
            f"{path} holds no yardsticks of this version: {error!r}; remove it and run the fused step again."
        ) from error


def _from_json(found: Any) -> tuple[Yardstick, ...]:
    if found["schema"] != SCHEMA:
        raise ValueError(f"schema {found['schema']}, not {SCHEMA}")
    return tuple(map(_yardstick, found["yardsticks"]))


def _yardstick(found: Mapping[str, Any]) -> Yardstick:
    yardstick = Yardstick(
        device=str(found["device"]),
        workload=str(found["workload"]),
        image_size=int(found["image_size"]),
        precision=str(found["precision"]),
        rate=float(found["rate"]),
        batch=int(found["batch"]),
        version=str(found["version"]),
        taken=str(found["taken"]),
    )
    if not 0 < yardstick.rate < inf:
        raise ValueError(f"a rate of {yardstick.rate}")
    return yardstick
