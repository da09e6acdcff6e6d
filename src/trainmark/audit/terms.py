"""Numbers and durations as people type them, and what heads and names mean.

Numbers: `148,720`, `381,46`, `7.5x`, `９２ %`, `1149.207img/s`.
Durations: `1h02min`, `20:04:48`, `33 min`, `3.5 hours`, `2 天`.
The role of a column by its head, arithmetic precisions, and how many devices a name speaks of (`1n8g`,
`4机32卡`, `8x V100`).
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

# A cell longer than this is a sentence, not a number.
LONGEST_CELL = 60
LEADING_MARKS = re.compile(r"[*_`~≈约×xX\s]{0,8}")
DIGITS = re.compile(r"[+-]?\d(?:[\d.,' ]{0,40}\d)?")
ONE_DECIMAL_COMMA = re.compile(r"\d,(?:\d{1,2}|\d{4,})(?!\d|,|\.)")
GROUPED = re.compile(r"\d{1,3}(?:[,' ]\d{3})+(?:\.\d+)?")
GROUPED_WITH_DOTS = re.compile(r"\d{1,3}(?:\.\d{3})+,\d+")
PLAIN_NUMBER = re.compile(r"\d+(?:\.\d+)?")
COMMA_DECIMAL = re.compile(r"\d+,\d+")
SPREAD = re.compile(r"[*_`\s]*(?:±|\+/-|\()")
BLANK_CELLS = frozenset(
    {"", "-", "--", "—", "–", "/", "n/a", "na", "none", "无", "tbd", "todo", "x", "*", "?", "nan"}
)


@dataclass(frozen=True)
class Number:
    """A printed number: its value, how many decimals were printed, and what follows it.

    `step` is the size of the last digit where the decimals do not tell it: 60 for `33 min` in seconds.
    """

    value: float
    decimals: int
    rest: str = ""
    step: float | None = None

    @property
    def unit(self) -> float:
        """The size of the last printed digit."""
        return float(self.step if self.step is not None else 10.0**-self.decimals)

    @property
    def half_unit(self) -> float:
        return self.unit / 2

    @property
    def low(self) -> float:
        """The least value that is printed so: rounded to the nearest digit."""
        return self.value - self.half_unit

    @property
    def high(self) -> float:
        """The largest value that is printed so: digits may have been cut off instead of rounded."""
        return self.value + self.unit

    def scaled(self, factor: float) -> Number:
        """The same printed digits in another unit."""
        return replace(self, value=self.value * factor, step=self.unit * factor)


def normalize_text(text: str) -> str:
    """Full-width characters as their narrow selves, and no space around."""
    return unicodedata.normalize("NFKC", text).strip()


def is_blank(text: str) -> bool:
    """A cell that holds nothing: empty, a dash, `n/a`."""
    return len(text) <= LONGEST_CELL and normalize_text(text).strip("*_` ").lower() in BLANK_CELLS


def uses_decimal_comma(texts: list[str]) -> bool:
    """Whether `1,5` means one and a half here: commas that cannot group thousands, and no decimal dots."""
    short = [normalize_text(text) for text in texts if len(text) <= LONGEST_CELL]
    return any(ONE_DECIMAL_COMMA.search(text) for text in short) and not any("." in text for text in short)


def parse_number(text: str, decimal_comma: bool = False) -> Number | None:
    """The number that a cell holds, or None where it holds a name, a range, a version or nothing."""
    if len(text) > LONGEST_CELL:
        return None
    plain = normalize_text(text)
    lead = LEADING_MARKS.match(plain)
    start = lead.end() if lead else 0
    match = DIGITS.match(plain, start)
    if not match:
        return None
    rest = plain[match.end() :]
    if any(character.isdigit() for character in rest) and not SPREAD.match(rest):
        return None
    digits = match[0]
    sign = -1.0 if digits.startswith("-") else 1.0
    read = _value(digits.lstrip("+-"), decimal_comma)
    if read is None:
        return None
    value, decimals = read
    return Number(sign * value, decimals, rest.strip().strip("*_`").strip())


def _value(digits: str, decimal_comma: bool) -> tuple[float, int] | None:
    if PLAIN_NUMBER.fullmatch(digits):
        return float(digits), len(digits.partition(".")[2])
    if GROUPED_WITH_DOTS.fullmatch(digits):
        return float(digits.replace(".", "").replace(",", ".")), len(digits.partition(",")[2])
    is_comma_decimal = COMMA_DECIMAL.fullmatch(digits)
    if is_comma_decimal and (decimal_comma or not GROUPED.fullmatch(digits)):
        return float(digits.replace(",", ".")), len(digits.partition(",")[2])
    if GROUPED.fullmatch(digits):
        return float(re.sub("[,' ]", "", digits)), len(digits.partition(".")[2])
    return None


CLOCK_TIME = re.compile(r"(\d{1,4}):([0-5]\d):([0-5]\d)(?:\.\d{1,6})?")
UNIT_SECONDS = {
    "d": 86400.0, "day": 86400.0, "天": 86400.0,
    "h": 3600.0, "hr": 3600.0, "hour": 3600.0, "小时": 3600.0,
    "m": 60.0, "min": 60.0, "minute": 60.0, "分钟": 60.0, "分": 60.0,
    "s": 1.0, "sec": 1.0, "second": 1.0, "秒": 1.0,
    "ms": 1e-3, "毫秒": 1e-3,
}  # fmt: skip
TIME_UNIT = r"days?|天|hours?|hrs?|h|小时|minutes?|mins?|ms|毫秒|m|分钟|分|seconds?|secs?|s|秒"
DURATION_PART = re.compile(rf"(\d{{1,7}}(?:\.\d{{1,4}})?) ?({TIME_UNIT})(?![a-z])", re.I | re.A)
DURATION = re.compile(rf"(?:\d{{1,7}}(?:\.\d{{1,4}})? ?(?:{TIME_UNIT})[ ,]{{0,3}}){{1,4}}", re.I | re.A)
UNIT_IN_HEAD = re.compile(rf"[(\[,/ -]({TIME_UNIT})[)\]. ]*$", re.I | re.A)


def parse_duration(text: str) -> Number | None:
    """The seconds that a cell names with its own units, or None."""
    if len(text) > LONGEST_CELL:
        return None
    plain = " ".join(normalize_text(text).strip("*_`~≈ ").lower().split())
    if clock := CLOCK_TIME.fullmatch(plain):
        hours, minutes, seconds = (int(part) for part in clock.groups())
        return Number(3600.0 * hours + 60 * minutes + seconds, 0, "s", 1.0)
    if not DURATION.fullmatch(plain):
        return None
    parts = [
        (float(count), len(count.partition(".")[2]), UNIT_SECONDS[_singular(unit)])
        for count, unit in DURATION_PART.findall(plain)
    ]
    total = sum(count * unit for count, _, unit in parts)
    return Number(total, 0, "s", min(unit * 10.0**-decimals for _, decimals, unit in parts))


def seconds_in_head(head: str) -> float | None:
    """How many seconds the unit at the end of a head is: `Time to train (hours)`."""
    match = UNIT_IN_HEAD.search(normalize_text(head).strip("*_` ").lower())
    return UNIT_SECONDS[_singular(match[1])] if match else None


def _singular(unit: str) -> str:
    plain = unit.lower()
    return plain if plain in UNIT_SECONDS else plain.removesuffix("s")


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
