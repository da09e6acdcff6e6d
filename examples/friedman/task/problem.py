"""Friedman's first problem (Friedman 1991): ten uniform inputs, of which five matter."""

import numpy as np

INPUTS = 10
RATE, MOMENTUM = 0.05, 0.9
# Over uniform inputs the target has this mean and standard deviation.
MEAN, DEVIATION = 14.41, 4.94
VALIDATION_ROWS = 4096
VALIDATION = 2**31  # the seed's second word; training steps have theirs below it


def rows(count, *seed):
    """Inputs and standardised targets; the same for the same seed in every framework."""
    x = np.random.default_rng(seed).random((count, INPUTS), dtype=np.float32)
    wave = 10 * np.sin(np.pi * x[:, 0] * x[:, 1])
    y = wave + 20 * (x[:, 2] - 0.5) ** 2 + 10 * x[:, 3] + 5 * x[:, 4]
    return x, ((y - MEAN) / DEVIATION).astype(np.float32)


def weights(width, seed=0):
    """The initial weights of all frameworks: hidden layer, output layer."""
    chance = np.random.default_rng([seed, width])
    hidden = chance.standard_normal((INPUTS, width)) / np.sqrt(INPUTS)
    output = chance.standard_normal((width, 1)) / np.sqrt(width)
    arrays = (hidden, np.zeros(width), output, np.zeros(1))
    return tuple(array.astype(np.float32) for array in arrays)
