"""What many formats share: patterns of numbers, settings that are counts, and digits in groups."""

import math
import re

from trainmark.published.readers.format import Setting

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
