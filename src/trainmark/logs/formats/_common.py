"""What many formats share: patterns of numbers, settings that are counts, and digits in groups.

Also the batch that printed figures imply, where their rounding leaves only one; else ValueError.
"""

import math
import re

from trainmark.logs.format import Setting

# A number that the line goes on after: one that a cut line ends in the middle of is not taken for whole.
NUMBER = rb"-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?"
LOSS = rb"-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?|nan|inf"
GROUPED = re.compile(rb"(?<=\d),(?=\d{3}(?:\D|$))")


def count(name: str, pattern: bytes, late: bool = False) -> Setting:
    """A setting that is a whole number: the group `value` of the pattern."""
    return Setting(name, re.compile(pattern), convert=int, late=late)


def fixed(name: str, pattern: bytes, means: int | str) -> Setting:
    """A setting that a line such as this means."""
    return Setting(name, re.compile(pattern), means)


def product(name: str, pattern: bytes) -> Setting:
    """A setting that is the product of the numbers in the group `value`, as those of a device mesh."""
    return Setting(
        name,
        re.compile(pattern),
        convert=lambda text: math.prod(int(number) for number in re.findall(r"\d+", text)),
    )


def listed(name: str, pattern: bytes) -> Setting:
    """A setting that is how many numbers the group `value` lists, as in `0,1,2,3`."""
    return Setting(name, re.compile(pattern), convert=lambda text: len(re.findall(r"\d+", text)))


def without_groups(block: bytes) -> bytes:
    """Digits without the commas that part them: `6,785` is no decimal number."""
    return GROUPED.sub(b"", block)


DECIMAL = re.compile(r"\d{1,15}\.\d{1,15}")


def batch_from_time_and_rate(text: str) -> int:
    """Seconds a step, the first number, times samples a second, the last."""
    seconds, *_, rate = DECIMAL.findall(text)
    (shortest, longest), (slowest, fastest) = _rounded_from(seconds), _rounded_from(rate)
    return _only_integer(shortest * slowest, longest * fastest)


def batch_from_speed_and_rate(text: str) -> int:
    """Samples a second, the last number, over steps a second, the first."""
    speed, *_, rate = DECIMAL.findall(text)
    (fewest, most), (slowest, fastest) = _rounded_from(speed), _rounded_from(rate)
    if fewest <= 0:
        raise ValueError(f"{speed} steps a second tell nothing")
    return _only_integer(slowest / most, fastest / fewest)


def _rounded_from(text: str) -> tuple[float, float]:
    """The interval of the numbers that print as this."""
    half_a_digit = 0.5 * 10.0 ** -len(text.partition(".")[2])
    return float(text) - half_a_digit, float(text) + half_a_digit


def _only_integer(low: float, high: float) -> int:
    least, most = math.ceil(low), math.floor(high)
    if least != most or least < 1:
        raise ValueError(f"any batch from {least} to {most} would fit")
    return least
