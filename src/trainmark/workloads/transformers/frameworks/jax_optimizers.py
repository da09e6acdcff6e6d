"""AdamW and LAMB in JAX, and the sharding of weights and moments over the ranks."""

import functools
import math
from typing import NamedTuple

import jax
from jax import lax
from jax import numpy as jnp
from jax.ad_checkpoint import checkpoint_name
from jax.sharding import PartitionSpec as P

from trainmark.workloads.common.frameworks import jax as framework
from trainmark.workloads.common.frameworks.jax import RANKS
from trainmark.workloads.transformers.spec import clip_factor, is_decayed

GATHERED = "gathered weight"


def specs(opt, shapes):
    """Return how each tensor lies on the ranks: sliced along the first axis that they divide, or whole."""
    if opt.sharding == "none":
        return dict.fromkeys(shapes, P())
    return {name: sliced(dimensions, opt.world_size) for name, dimensions in shapes.items()}


def sliced(dimensions, ranks):
    for axis, size in enumerate(dimensions):
        if size % ranks == 0:
            return P(*[None] * axis, RANKS)
    return P()


def axis_of(spec):
    """Return the axis along which a tensor is sliced, None where every rank has the whole."""
    return spec.index(RANKS) if RANKS in spec else None


def whole(weight, spec, kind):
    """Return the whole of a weight as numbers of this kind."""
    axis = axis_of(spec)
    if axis is None:
        return weight.astype(kind)
    return checkpoint_name(gathered(weight, axis, kind), GATHERED)


@functools.partial(jax.custom_vjp, nondiff_argnums=(1, 2))
def gathered(weight, axis, kind):
    """Gather the ranks' slices; backward each rank gets the sum of the gradients, in float32, of its own."""
    return lax.all_gather(weight.astype(kind), RANKS, axis=axis, tiled=True)


def _gathered_forward(weight, axis, kind):
    return gathered(weight, axis, kind), None


def _gathered_backward(axis, kind, _, gradient):
    gradient = gradient.astype(jnp.float32)
    return (lax.psum_scatter(gradient, RANKS, scatter_dimension=axis, tiled=True),)


gathered.defvjp(_gathered_forward, _gathered_backward)


def gather_again(run):
    """Return a function of which backward needs no gathered weights: it gathers them once more."""
    policy = jax.checkpoint_policies.save_anything_except_these_names(GATHERED)
    return jax.checkpoint(run, policy=policy)


def mean_over_ranks(gradient, spec, ranks):
    """Return the ranks' mean; the slices of gathered weights have been summed by their backward pass."""
    return lax.pmean(gradient, RANKS) if axis_of(spec) is None else gradient / ranks


def squared_norm(tensor, spec):
    """Return the sum of the squares of the whole tensor in float32."""
    # Axis by axis: one float32 sum of so many numbers would lose digits on a CPU.
    total = jnp.square(tensor.astype(jnp.float32))
    while total.ndim:
        total = total.sum(-1)
    return total if axis_of(spec) is None else lax.psum(total, RANKS)


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
