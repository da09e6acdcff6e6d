"""The devices that a report names, and the most that each can do."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from trainmark.machine.devices import known_peak_flops
from trainmark.published.audit.report.report import Report

DEVICES = Path(__file__).with_name("devices.yaml")
# Any accelerator by its usual names; one that the list does not know leaves the limits open.
ACCELERATOR = re.compile(
    r"\bG?[VAHBPKTL]\d{1,3}0?0(?![0-9])|\bT4\b|\bL40S?\b|\b(?:RTX|GTX|GeForce|Tesla|Quadro|TITAN|TPU|Ascend|Gaudi|MI\d{2,3}|DGX|2080|1080)"
    r"|\bv[3-6][ep]?-\d|昇腾|寒武纪",
    re.I | re.A,
)
# A processor by its usual names, or any device where our own reports name it.
PROCESSOR = re.compile(
    r"\b(?:Xeon|EPYC|Ryzen|Threadripper|Core i\d|Neoverse|Graviton|Kunpeng|Altra|Grace)\b|鲲鹏"
    r"|(?:^|· )(?:device|设备) \S",
    re.I | re.A,
)
PRECISIONS = ("fp32", "tf32", "fp16", "bf16")
# Where a report says FP32, a device that has TF32 may have used it: frameworks turn it on unasked.
MAY_MEAN = {"fp32": ("fp32", "tf32"), "amp": ("fp16", "bf16"), None: PRECISIONS}


@dataclass(frozen=True)
class NamedDevice:
    """A device, by the name that its peak is known by; `rates` in TFLOP/s are those of no such table."""

    name: str
    family: str
    memory_mib: int
    rates: tuple[tuple[str, float], ...] = ()
    variants: tuple[float, ...] = ()

    def peak_flops(self, precision: str | None) -> float | None:
        """The highest rate that a precision's name can stand for."""
        meant = MAY_MEAN.get(precision, (precision or "",))
        known = [peak for name in meant if (peak := self._peak(name))]
        return max(known, default=None)

    def dense_peaks(self) -> tuple[float, ...]:
        """The dense peaks in FLOP/s that a 16-bit utilisation may be taken of, the usual one first."""
        usual = self._peak("bf16") or self._peak("fp16")
        return (*((usual,) if usual else ()), *(1e12 * rate for rate in self.variants))

    def fp8_peak(self) -> float | None:
        return self._peak("fp8")

    def _peak(self, precision: str) -> float | None:
        own = dict(self.rates).get("bf16" if precision == "fp16" else precision)
        return own * 1e12 if own else known_peak_flops(self.name, precision)


def devices_for(report: Report, words: Sequence[str]) -> tuple[NamedDevice, ...]:
    """The devices that a table's own words name, else all that the report does."""
    if any(ACCELERATOR.search(text) for text in words):
        return devices_in_words(words)
    return tuple(report.cached("devices", lambda whole: devices_in_words(_texts(whole))))


def devices_in_words(texts: Iterable[str]) -> tuple[NamedDevice, ...]:
    """All known devices in some texts; none where one is named that is not known."""
    devices: dict[str, NamedDevice] = {}
    for text in texts:
        if not ACCELERATOR.search(text):
            continue
        known = [device for pattern, device in _devices() if pattern.search(text)]
        if not known:
            return ()
        variants: dict[str, NamedDevice] = {}
        for device in known:
            variants.setdefault(device.family, device)
        devices.update((device.name, device) for device in variants.values())
    return tuple(devices.values())


def names_device(report: Report) -> bool:
    return report.mentions(ACCELERATOR) or report.mentions(PROCESSOR)


def _texts(report: Report) -> list[str]:
    texts = [passage.text[:2000] for passage in (*report.headings, *report.prose)]
    for table in report.tables:
        texts += [table.caption, *(cell.text[:200] for row in (table.head, *table.rows) for cell in row)]
    return texts


@cache
def _devices() -> list[tuple[re.Pattern[str], NamedDevice]]:
    import yaml

    entries: list[dict[str, Any]] = yaml.safe_load(DEVICES.read_text(encoding="utf-8"))
    return [(re.compile(entry["pattern"], re.I | re.A), _device(entry)) for entry in entries]


def _device(entry: dict[str, Any]) -> NamedDevice:
    rates = tuple((name, float(entry[name])) for name in ("bf16", "fp8") if name in entry)
    return NamedDevice(
        entry["name"], entry["family"], entry["memory"], rates, tuple(map(float, entry.get("variants", ())))
    )
