"""Mixup (Zhang et al. 2018): sample i of a batch of n is mixed with sample n-1-i, and so are their labels."""

import numpy as np


def coefficient(alpha, seed, step):
    """Draw the mixing coefficient of a step from Beta(alpha, alpha): the same on every rank."""
    return float(np.random.default_rng([seed, step]).beta(alpha, alpha))


def mix(values, others, lam):
    """Return `lam` of the values and the rest of the others: numbers, or tensors of any framework."""
    return lam * values + (1 - lam) * others
