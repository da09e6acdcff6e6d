"""`light.json`: reference rates of devices, kept for a machine, and beside each run that is held to them."""

from __future__ import annotations

from collections.abc import Iterable
from math import inf
from pathlib import Path
from typing import Any

from trainmark.measure.reference_rate import ReferenceRate
from trainmark.store.files import StoreError, read_json, write_json
from trainmark.typed_json import decode, encode

LIGHT = "light.json"
SCHEMA = 1


def keep_light(folder: Path, rates: Iterable[ReferenceRate]) -> None:
    """In place of what was kept there."""
    folder.mkdir(parents=True, exist_ok=True)
    write_json(folder / LIGHT, {"schema": SCHEMA, "yardsticks": [encode(each) for each in rates]})


def load_light(folder: Path) -> tuple[ReferenceRate, ...]:
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
            f"{path} has no reference rates of this version: {error!r}; remove it, run the fused step again."
        ) from error


def _from_json(plain: Any) -> tuple[ReferenceRate, ...]:
    if plain["schema"] != SCHEMA:
        raise ValueError(f"schema {plain['schema']}, not {SCHEMA}")
    rates = tuple(decode(ReferenceRate, each) for each in plain["yardsticks"])
    for reference in rates:
        if not 0 < reference.rate < inf:
            raise ValueError(f"a rate of {reference.rate}")
    return rates
