"""Fully sharded data parallelism in JAX: a rank stores a slice of each weight and gathers it for use."""

import functools

import jax
from jax import lax
from jax import numpy as jnp
from jax.ad_checkpoint import checkpoint_name
from jax.sharding import PartitionSpec as P

from trainmark.workloads.common.frameworks.jax import RANKS

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
