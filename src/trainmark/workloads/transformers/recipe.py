"""Recipes of transformers: AdamW (Loshchilov & Hutter 2019) or LAMB (You et al. 2020), with clipping."""

from __future__ import annotations

from dataclasses import dataclass

from trainmark.workloads.common.optimizer import recipe


@dataclass(frozen=True)
class TransformerRecipe(recipe.Recipe):
    """Weight decay is on matrices only. Gradients are clipped to the global norm `clip`.

    An epoch, after which there is an evaluation, is a pass over `epoch_tokens` of the corpus; over all of it
    where it has fewer, or none are given.
    """

    beta1: float = 0.9
    beta2: float = 0.999
    epsilon: float = 1e-8
    clip: float = 1.0
    epoch_tokens: int | None = None


def is_decayed(dimensions):
    """Whether a tensor of these dimensions has weight decay: matrices have, norms and biases have not."""
    return len(dimensions) > 1


def clip_factor(norm, clip):
    """Return what a gradient of this global norm is multiplied with, before it is capped at 1."""
    return clip / (norm + 1e-6)
