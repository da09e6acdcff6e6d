"""Numbers as people type them into tables: `148,720`, `381,46`, `7.5x`, `９２ %`, `1149.207img/s`."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass, replace

# A cell longer than this is a sentence, not a number.
LONGEST_CELL = 60
LEAD = re.compile(r"[*_`~≈约×xX\s]{0,8}")
DIGITS = re.compile(r"[+-]?\d(?:[\d.,' ]{0,40}\d)?")
ONE_DECIMAL_COMMA = re.compile(r"\d,(?:\d{1,2}|\d{4,})(?!\d|,|\.)")
GROUPED = re.compile(r"\d{1,3}(?:[,' ]\d{3})+(?:\.\d+)?")
GROUPED_WITH_DOTS = re.compile(r"\d{1,3}(?:\.\d{3})+,\d+")
PLAIN = re.compile(r"\d+(?:\.\d+)?")
COMMA_DECIMAL = re.compile(r"\d+,\d+")
SPREAD = re.compile(r"[*_`\s]*(?:±|\+/-|\()")
BLANKS = frozenset(
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


def normal(text: str) -> str:
    """Full-width characters as their narrow selves, and no space around."""
    return unicodedata.normalize("NFKC", text).strip()


def is_blank(text: str) -> bool:
    """A cell that holds nothing: empty, a dash, `n/a`."""
    return len(text) <= LONGEST_CELL and normal(text).strip("*_` ").lower() in BLANKS


def uses_decimal_comma(texts: list[str]) -> bool:
    """Whether `1,5` means one and a half here: commas that cannot group thousands, and no decimal dots."""
    short = [normal(text) for text in texts if len(text) <= LONGEST_CELL]
    return any(ONE_DECIMAL_COMMA.search(text) for text in short) and not any("." in text for text in short)


def parse_number(text: str, decimal_comma: bool = False) -> Number | None:
    """The number that a cell holds, or None where it holds a name, a range, a version or nothing."""
    if len(text) > LONGEST_CELL:
        return None
    plain = normal(text)
    lead = LEAD.match(plain)
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
    if PLAIN.fullmatch(digits):
        return float(digits), len(digits.partition(".")[2])
    if GROUPED_WITH_DOTS.fullmatch(digits):
        return float(digits.replace(".", "").replace(",", ".")), len(digits.partition(",")[2])
    is_comma_decimal = COMMA_DECIMAL.fullmatch(digits)
    if is_comma_decimal and (decimal_comma or not GROUPED.fullmatch(digits)):
        return float(digits.replace(",", ".")), len(digits.partition(",")[2])
    if GROUPED.fullmatch(digits):
        return float(re.sub("[,' ]", "", digits)), len(digits.partition(".")[2])
    return None
