"""The batch that printed figures imply, where their rounding leaves only one; else ValueError."""

import math
import re

NUMBER = re.compile(r"\d+\.\d+")


def from_time_and_rate(text: str) -> int:
    """Seconds a step, the first number, times samples a second, the last."""
    seconds, *_, rate = NUMBER.findall(text)
    low, high = _rounded_from(seconds)
    return _only_one(low * float(rate), high * float(rate))


def from_speed_and_rate(text: str) -> int:
    """Samples a second, the last number, over steps a second, the first."""
    speed, *_, rate = NUMBER.findall(text)
    low, high = _rounded_from(speed)
    if low <= 0:
        raise ValueError(f"{speed} steps a second tell nothing")
    return _only_one(float(rate) / high, float(rate) / low)


def _rounded_from(text: str) -> tuple[float, float]:
    """The interval of the numbers that print as this."""
    half_a_digit = 0.5 * 10.0 ** -len(text.partition(".")[2])
    return float(text) - half_a_digit, float(text) + half_a_digit


def _only_one(low: float, high: float) -> int:
    least, most = math.ceil(low), math.floor(high)
    if least != most:
        raise ValueError(f"any batch from {least} to {most} would fit")
    return least
