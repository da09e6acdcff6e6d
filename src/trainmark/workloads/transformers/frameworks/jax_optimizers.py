"""AdamW and LAMB in JAX, written out: XLA makes one kernel of what happens to a tensor."""

import math
from typing import NamedTuple

import jax
from jax import numpy as jnp

from trainmark.workloads.common.frameworks import jax as framework
from trainmark.workloads.transformers.frameworks.jax_sharding import squared_norm
from trainmark.workloads.transformers.recipe import clip_factor, is_decayed


class State(NamedTuple):
    """What a step takes and gives back in the same memory: float32 tensors by canonical name, and scalars."""

    weights: dict
    first: dict
    second: dict
    steps: jax.Array  # that AdamW has taken
    scale: jax.Array
    good_steps: jax.Array  # since the loss scale has changed


def update(opt, specs, state, gradients, rate):
    """Clip the mean gradients to their global norm and update; an overflow of `amp` leaves all as it was."""
    squares = [squared_norm(gradients[name], specs[name]) for name in gradients]
    norm = jnp.sqrt(jnp.stack(squares).sum()) / state.scale
    factor = jnp.minimum(clip_factor(norm, opt.recipe.clip), 1.0) / state.scale
    moved = updated(opt, specs, state, gradients, factor, rate)
    if opt.precision != "amp":
        return moved
    finite = jnp.isfinite(norm)
    taken = jax.tree.map(lambda new, old: jnp.where(finite, new, old), moved, state)
    if opt.loss_scale != "dynamic":
        return taken
    scale, good_steps = framework.rescaled(state.scale, state.good_steps, finite)
    return taken._replace(scale=scale, good_steps=good_steps)


def updated(opt, specs, state, gradients, factor, rate):
    recipe, steps = opt.recipe, state.steps + 1.0
    corrections = tuple(bias_correction(beta, steps) for beta in (recipe.beta1, recipe.beta2))
    move = lamb if recipe.optimizer == "lamb" else adamw
    weights, first, second = {}, {}, {}
    for name, weight in state.weights.items():
        gradient = gradients[name].astype(jnp.float32) * factor
        first[name] = recipe.beta1 * state.first[name] + (1 - recipe.beta1) * gradient
        second[name] = recipe.beta2 * state.second[name] + (1 - recipe.beta2) * jnp.square(gradient)
        mean, square = first[name] / corrections[0], second[name] / corrections[1]
        direction = mean / (jnp.sqrt(square) + recipe.epsilon)
        decay = recipe.weight_decay if is_decayed(weight.shape) else 0.0
        weights[name] = move(weight, direction, rate, decay, specs[name])
    return state._replace(weights=weights, first=first, second=second, steps=steps)


def bias_correction(beta, steps):
    """Return 1 - beta ** steps, to the last digit also where beta is near one (Kingma & Ba 2015)."""
    return -jnp.expm1(steps * math.log(beta))


def adamw(weight, direction, rate, decay, spec):
    """Return the weight after a step with decoupled decay (Loshchilov & Hutter 2019)."""
    return weight * (1 - rate * decay) - rate * direction


def lamb(weight, direction, rate, decay, spec):
    """Return the weight after a step in proportion to its norm (You et al. 2020); vectors step as in Adam."""
    if not is_decayed(weight.shape):
        return weight - rate * direction
    direction = direction + decay * weight
    norms = (jnp.sqrt(squared_norm(tensor, spec)) for tensor in (weight, direction))
    weight_norm, direction_norm = norms
    both = (weight_norm > 0) & (direction_norm > 0)
    ratio = jnp.where(both, weight_norm / jnp.where(both, direction_norm, 1.0), 1.0)
    return weight - rate * ratio * direction
