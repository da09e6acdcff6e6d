"""LARS, mixup and the loss scale, on plain numbers or on any framework's tensors.

LARS is You et al. 2017. In mixup (Zhang et al. 2018) sample i of a batch of n is mixed with sample n-1-i,
and so are their labels. The loss scale of `--precision amp` is static, or halved by an overflow and
doubled after steps without.
"""

import numpy as np


def is_excluded_from_lars(ndim):
    """Whether a parameter of so many axes takes the bare rate, without decay: biases and batch norms do."""
    return ndim == 1


def lars_trust_ratio(weight_norm, gradient_norm, coefficient, weight_decay):
    """Return the layer's own factor of the rate; 1 is to be used where either norm is zero."""
    return coefficient * weight_norm / (gradient_norm + weight_decay * weight_norm)


def mixup_coefficient(alpha, seed, step):
    """Draw the mixing coefficient of a step from Beta(alpha, alpha): the same on every rank."""
    return float(np.random.default_rng([seed, step]).beta(alpha, alpha))


def mixup(values, others, lam):
    """Return `lam` of the values and the rest of the others: numbers, or tensors of any framework."""
    return lam * values + (1 - lam) * others


FIRST_LOSS_SCALE = 2.0**16
LOSS_SCALE_GROWTH_STEPS = 2000


def initial_loss_scale(opt):
    if opt.precision != "amp":
        return 1.0
    return FIRST_LOSS_SCALE if opt.loss_scale == "dynamic" else opt.loss_scale
