"""The heads of a table as roles: which column counts devices, which holds the throughput."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import Any

from trainmark.published.audit.report.number import LONGEST_CELL, normal

ROLES = Path(__file__).with_name("columns.yaml")
PER_DEVICE = re.compile(
    r"(per|/) ?(gpu|device|card|chip|[nht]pu|accelerator|gcd|卡)(?![a-z])|每卡|单卡|每张", re.A
)
PER_SECOND = re.compile(r"(?:/|per) ?(s|sec|second|ms|min|minute|hour|h|秒|分钟)(?![a-z])", re.A)
SECONDS = {
    "s": 1.0,
    "sec": 1.0,
    "second": 1.0,
    "秒": 1.0,
    "ms": 1e-3,
    "min": 60.0,
    "minute": 60.0,
    "分钟": 60.0,
}


def role_of(head: str) -> str | None:
    """The role of a column by its head, or None."""
    if len(head) > 4 * LONGEST_CELL:
        return None
    plain = simplified(head)
    for role, pattern in _roles():
        if pattern.search(plain):
            return role
    return None


def simplified(head: str) -> str:
    return re.sub(r"[_*`\s]+", " ", normal(head).lower()).strip()


def is_per_device(head: str) -> bool:
    return bool(PER_DEVICE.search(simplified(head)))


def seconds_per_unit(head: str) -> float | None:
    """How long the unit of a rate is, `samples/ms` being a thousandth; None where the head names none."""
    match = PER_SECOND.search(simplified(head))
    return SECONDS.get(match[1], 3600.0) if match else None


@cache
def _roles() -> list[tuple[str, re.Pattern[str]]]:
    import yaml

    entries: list[dict[str, Any]] = yaml.safe_load(ROLES.read_text(encoding="utf-8"))
    return [(entry["role"], re.compile("|".join(entry["patterns"]), re.A)) for entry in entries]
