"""The devices that a report names, and the most that each can do."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from trainmark.audit.report import Report
from trainmark.system.available import known_peak_flops

DEVICES = Path(__file__).with_name("devices.yaml")
# Any accelerator by its usual names; one that the list does not know leaves the limits open.
ACCELERATOR = re.compile(
    r"\b[VAHBPKTL]\d{1,3}0?0\b|\bT4\b|\bL40S?\b|\b(?:RTX|GTX|GeForce|Tesla|Quadro|TITAN|TPU|Ascend|MI\d{2,3}|DGX|2080|1080)"
    r"|昇腾|寒武纪",
    re.I | re.A,
)
PRECISIONS = ("fp32", "tf32", "fp16", "bf16")
# Where a report says FP32, a device that has TF32 may have used it: frameworks turn it on unasked.
MAY_MEAN = {"fp32": ("fp32", "tf32"), "amp": ("fp16", "bf16"), None: PRECISIONS}


@dataclass(frozen=True)
class NamedDevice:
    """A device, by the name that its peak is known by."""

    name: str
    memory_mib: int

    def peak_flops(self, precision: str | None) -> float | None:
        """The highest rate that a precision's name can stand for."""
        meant = MAY_MEAN.get(precision, (precision or "",))
        known = [peak for name in meant if (peak := known_peak_flops(self.name, name))]
        return max(known, default=None)


def named_devices(report: Report) -> tuple[NamedDevice, ...]:
    """All known devices in the report's words; none where it also names one that is not known."""
    found: dict[str, NamedDevice] = {}
    for text in _texts(report):
        if not ACCELERATOR.search(text):
            continue
        known = [device for pattern, device in _devices() if pattern.search(text)]
        if not known:
            return ()
        found[known[0].name] = known[0]
    return tuple(found.values())


def names_accelerator(report: Report) -> bool:
    return report.mentions(ACCELERATOR)


def _texts(report: Report) -> list[str]:
    texts = [passage.text[:2000] for passage in (*report.headings, *report.prose)]
    for table in report.tables:
        texts += [table.caption, *(cell.text[:200] for row in (table.head, *table.rows) for cell in row)]
    return texts


@cache
def _devices() -> list[tuple[re.Pattern[str], NamedDevice]]:
    import yaml

    entries: list[dict[str, Any]] = yaml.safe_load(DEVICES.read_text(encoding="utf-8"))
    return [
        (re.compile(entry["pattern"], re.I | re.A), NamedDevice(entry["name"], entry["memory"]))
        for entry in entries
    ]
