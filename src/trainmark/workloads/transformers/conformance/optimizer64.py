"""AdamW and LAMB with clipping by the global norm, in float64: the definition that frameworks must follow."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from trainmark.workloads.transformers.conformance.initial import Constants
from trainmark.workloads.transformers.conformance.layers64 import Array

CLIP_EPSILON = 1e-6  # as torch.nn.utils.clip_grad_norm_ adds to the norm

Tensors = dict[str, Array]


class Optimizer:
    """Moments of every tensor, and the update of the weights by them."""

    def __init__(self, kind: str, weights: Mapping[str, Array], constants: Constants) -> None:
        self.kind, self.constants = kind, constants
        self.first = {name: np.zeros_like(weight) for name, weight in weights.items()}
        self.second = {name: np.zeros_like(weight) for name, weight in weights.items()}
        self.steps = 0

    def update(self, weights: Mapping[str, Array], gradients: Mapping[str, Array], rate: float) -> Tensors:
        """Return the weights after one step."""
        constants = self.constants
        self.steps += 1
        updated = {}
        for name, gradient in clipped(gradients, constants.clip).items():
            weight = weights[name]
            self.first[name] = constants.beta1 * self.first[name] + (1 - constants.beta1) * gradient
            self.second[name] = constants.beta2 * self.second[name] + (1 - constants.beta2) * gradient**2
            step = direction(self.first[name], self.second[name], self.steps, constants)
            if is_decayed(name, weight):
                step = step + constants.weight_decay * weight
                if self.kind == "lamb":
                    step = step * trust(weight, step)
            updated[name] = weight - rate * step
        return updated


def clipped(gradients: Mapping[str, Array], limit: float) -> Tensors:
    """Scale all gradients alike, so that their common norm is at most the limit."""
    factor = min(1.0, limit / (global_norm(gradients) + CLIP_EPSILON))
    return {name: factor * gradient for name, gradient in gradients.items()}


def global_norm(gradients: Mapping[str, Array]) -> float:
    return float(np.sqrt(sum(np.square(gradient).sum() for gradient in gradients.values())))


def direction(first: Array, second: Array, steps: int, constants: Constants) -> Array:
    """Return Adam's step at rate 1, the bias of moments that began at zero corrected (Kingma and Ba 2015)."""
    mean, square = first / (1 - constants.beta1**steps), second / (1 - constants.beta2**steps)
    return mean / (np.sqrt(square) + constants.epsilon)


def is_decayed(name: str, weight: Array) -> bool:
    """Weight decay, and LAMB's trust ratio, are for matrices: not for norms and biases."""
    return weight.ndim >= 2


def trust(weight: Array, step: Array) -> float:
    """Return LAMB's trust ratio (You et al. 2020)."""
    norms = float(np.linalg.norm(weight)), float(np.linalg.norm(step))
    return norms[0] / norms[1] if min(norms) > 0 else 1.0
