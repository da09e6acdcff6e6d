"""What heads, names and devices in a report mean.

The role of a column by its head, arithmetic precisions, how many devices a name speaks of (`1n8g`, `4机32卡`,
`8x V100`), and the devices named with the most that each can do.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from trainmark.audit.number import LONGEST_CELL, normalize_text
from trainmark.audit.report import Report
from trainmark.machine.devices import known_peak_flops

ROLES_FILE = Path(__file__).with_name("columns.yaml")
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
    plain = simplify_head(head)
    for role, pattern in _roles():
        if pattern.search(plain):
            return role
    return None


def simplify_head(head: str) -> str:
    return re.sub(r"[_*`\s]+", " ", normalize_text(head).lower()).strip()


def is_per_device(head: str) -> bool:
    return bool(PER_DEVICE.search(simplify_head(head)))


def seconds_per_unit(head: str) -> float | None:
    """How long the unit of a rate is, `samples/ms` being a thousandth; None where the head names none."""
    match = PER_SECOND.search(simplify_head(head))
    return SECONDS.get(match[1], 3600.0) if match else None


@cache
def _roles() -> list[tuple[str, re.Pattern[str]]]:
    import yaml

    entries: list[dict[str, Any]] = yaml.safe_load(ROLES_FILE.read_text(encoding="utf-8"))
    return [(entry["role"], re.compile("|".join(entry["patterns"]), re.A)) for entry in entries]


PRECISION_PATTERNS = (
    ("fp4", r"fp-? ?4(?!\d)"),
    ("fp8", r"fp-? ?8(?!\d)|float8|\be4m3\b"),
    ("bf16", r"bf-? ?16|bfloat16"),
    ("tf32", r"tf-? ?32"),
    ("fp32", r"fp-? ?32|float32|(?:single|full)[- ]precision|单精度"),
    (
        "amp",
        r"(?:mixed|half)[- ]precision|(?<![a-z])(?:amp|mixed)(?![a-z])|fp-? ?16|float16|混合精度|半精度",
    ),
)  # fmt: skip
COMPILED_PRECISIONS = tuple((name, re.compile(pattern, re.I)) for name, pattern in PRECISION_PATTERNS)
ANY_PRECISION = re.compile("|".join(pattern for _, pattern in PRECISION_PATTERNS), re.I)
# Tables that compare two precisions set one of each class side by side.
PRECISION_CLASSES = {
    "fp32": "full",
    "tf32": "full",
    "amp": "reduced",
    "bf16": "reduced",
    "fp8": "fp8",
    "fp4": "fp4",
}


def precisions_in(text: str) -> tuple[str, ...]:
    """The precisions that a text names, each once, as they come."""
    plain = normalize_text(text).replace("_", " ")
    places = [
        (match.start(), name) for name, pattern in COMPILED_PRECISIONS if (match := pattern.search(plain))
    ]
    return tuple(name for _, name in sorted(places))


def only_precision(text: str) -> str | None:
    """The one precision that a text names, `TF32/FP32` being one; None where it names none or several."""
    precisions = precisions_in(text)
    return precisions[0] if len({PRECISION_CLASSES[name] for name in precisions}) == 1 else None


def same_class(one: str | None, other: str | None) -> bool:
    return one is not None and other is not None and PRECISION_CLASSES[one] == PRECISION_CLASSES[other]


def without_precision(text: str) -> str:
    """A head without the precision it names: what two columns of different precision have in common."""
    plain = ANY_PRECISION.sub(" ", normalize_text(text).lower().replace("_", " "))
    return " ".join(re.sub(r"[\W_]+", " ", plain).split())


SHORT_TOPOLOGY = re.compile(r"(?<![a-z0-9])(\d{1,4})n(\d{1,3})g(?![a-z0-9])", re.I | re.A)
DEVICE_COUNT = re.compile(
    r"(?<![\d.])(\d{1,5}) ?(?:卡|张卡|(?:gpu|card|device|npu)s?\b|[x×*] ?(?:nvidia |tesla )?[vahpt]\d)",
    re.I | re.A,
)
DEVICE_COUNT_AFTER = re.compile(
    r"(?:gpu|v100|a100|h100|t4|p100)[\w-]{0,12} ?[x×*] ?(\d{1,4})(?!\d)"
    r"|(?:gpu|npu|card|卡)s? ?[=:] ?(\d{1,5})(?!\d)",
    re.I | re.A,
)
NODE_COUNT = re.compile(r"(?<![\d.])(\d{1,4}) ?(?:机|台|nodes?\b)", re.I | re.A)


def devices_in(text: str) -> int | None:
    """The devices that a cell, a file's folder or a heading names, or None."""
    if len(text) > LONGEST_CELL:
        return None
    plain = normalize_text(text)
    if short := SHORT_TOPOLOGY.search(plain):
        return int(short[1]) * int(short[2])
    if cards := DEVICE_COUNT.search(plain) or DEVICE_COUNT_AFTER.search(plain):
        return int(next(filter(None, cards.groups())))
    return 1 if re.match(r"单机单卡|单卡", plain) else None


def nodes_in(text: str) -> int | None:
    if len(text) > LONGEST_CELL:
        return None
    plain = normalize_text(text)
    match = SHORT_TOPOLOGY.search(plain) or NODE_COUNT.search(plain)
    return int(match[1]) if match else None


DEVICES_FILE = Path(__file__).with_name("devices.yaml")
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
    return tuple(report.cached("devices", lambda whole: devices_in_words(_report_texts(whole))))


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


def _report_texts(report: Report) -> list[str]:
    texts = [passage.text[:2000] for passage in (*report.headings, *report.prose)]
    for table in report.tables:
        texts += [table.caption, *(cell.text[:200] for row in (table.head, *table.rows) for cell in row)]
    return texts


@cache
def _devices() -> list[tuple[re.Pattern[str], NamedDevice]]:
    import yaml

    entries: list[dict[str, Any]] = yaml.safe_load(DEVICES_FILE.read_text(encoding="utf-8"))
    return [(re.compile(entry["pattern"], re.I | re.A), _device(entry)) for entry in entries]


def _device(entry: dict[str, Any]) -> NamedDevice:
    rates = tuple((name, float(entry[name])) for name in ("bf16", "fp8") if name in entry)
    return NamedDevice(
        entry["name"], entry["family"], entry["memory"], rates, tuple(map(float, entry.get("variants", ())))
    )
