"""The order of the two sides within each pair of trials."""

from __future__ import annotations

import random


def b_first(seed: int, index: int) -> bool:
    """Draw whether B runs first in pair number `index`; the same again after an interruption.

    In a fixed order a drift of the machine, shared by both sides, would favour the side that comes first.
    """
    return random.Random(f"pair {seed} {index}").random() < 0.5
