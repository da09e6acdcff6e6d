"""Walker's alias method in whole numbers: one table lookup draws from any distribution.

A distribution over n outcomes becomes n columns of the same weight, each shared by at most two outcomes
(Walker 1977; Vose 1991). The tables are made in integer arithmetic, so that they and what is drawn from them
are the same bytes on every machine.
"""

import numpy as np

SHIFT = np.uint64(32)
LOW = np.uint64((1 << 32) - 1)
FULL = 1 << 32  # the weight of a column


class Tables:
    """The tables of several distributions, one behind the other."""

    def __init__(self, distributions):
        pairs = [_table(weights) for weights in distributions]
        self.limits = np.concatenate([limits for limits, _ in pairs])
        self.others = np.concatenate([others for _, others in pairs])

    def draw(self, bits, begins, sizes):
        """Return an outcome for each 32-bit number, of the table that begins there and is that long."""
        product = bits * sizes
        column = (product >> SHIFT).astype(np.int64)
        place = begins + column
        return np.where((product & LOW) < self.limits[place], column, self.others[place])


def _table(weights):
    """Return the limit of each column in units of 1/FULL, and who has what is above."""
    total, size = sum(weights), len(weights)
    limits, others = np.full(size, FULL, np.uint64), np.arange(size)
    # Exact: weights times n against the total, all Python integers.
    left = [weight * size for weight in weights]
    small = [index for index in range(size) if left[index] < total]
    large = [index for index in range(size) if left[index] >= total]
    while small and large:
        lower, upper = small.pop(), large[-1]
        limits[lower] = left[lower] * FULL // total
        others[lower] = upper
        left[upper] -= total - left[lower]
        if left[upper] < total:
            small.append(large.pop())
    return limits, others
