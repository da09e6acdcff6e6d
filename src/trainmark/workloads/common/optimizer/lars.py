"""LARS (You et al. 2017) on plain numbers, or on tensors of any framework that hold one each."""


def is_excluded(ndim):
    """Whether a parameter of so many axes takes the bare rate, without decay: biases and batch norms do."""
    return ndim == 1


def trust_ratio(weight_norm, gradient_norm, coefficient, weight_decay):
    """Return the layer's own factor of the rate; 1 is to be used where either norm is zero."""
    return coefficient * weight_norm / (gradient_norm + weight_decay * weight_norm)
