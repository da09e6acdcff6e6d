"""The batch that printed figures imply, where their rounding leaves only one; else ValueError."""

import math
import re

NUMBER = re.compile(r"\d{1,15}\.\d{1,15}")


def from_time_and_rate(text: str) -> int:
    """Seconds a step, the first number, times samples a second, the last."""
    seconds, *_, rate = NUMBER.findall(text)
    (shortest, longest), (slowest, fastest) = _rounded_from(seconds), _rounded_from(rate)
    return _only_one(shortest * slowest, longest * fastest)


def from_speed_and_rate(text: str) -> int:
    """Samples a second, the last number, over steps a second, the first."""
    speed, *_, rate = NUMBER.findall(text)
    (fewest, most), (slowest, fastest) = _rounded_from(speed), _rounded_from(rate)
    if fewest <= 0:
        raise ValueError(f"{speed} steps a second tell nothing")
    return _only_one(slowest / most, fastest / fewest)


def _rounded_from(text: str) -> tuple[float, float]:
    """The interval of the numbers that print as this."""
    half_a_digit = 0.5 * 10.0 ** -len(text.partition(".")[2])
    return float(text) - half_a_digit, float(text) + half_a_digit


def _only_one(low: float, high: float) -> int:
    least, most = math.ceil(low), math.floor(high)
    if least != most or least < 1:
        raise ValueError(f"any batch from {least} to {most} would fit")
    return least
