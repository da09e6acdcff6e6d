"""Training a Llama-shaped decoder in plain JAX: the model, and main; the rest is of all transformers."""

import functools

import jax
import numpy as np
from jax import lax
from jax import numpy as jnp

from trainmark.workloads.llama.shared import INITIAL_DEVIATION, NORM_EPSILON, ROTARY_BASE, SPEC, shapes
from trainmark.workloads.transformers.frameworks import jax as transformer
from trainmark.workloads.transformers.frameworks.jax_layers import (
    attention,
    embedding,
    linear,
    split_heads,
)

# The model


def hidden(opt, weights, blocks, tokens):
    """Return the hidden states that the head takes."""
    x = embedding(weights["token_embedding.weight"], tokens)
    angles = rotary_angles(opt.shape.head_width, tokens.shape[1])
    return rms_norm(weights, "norm", blocks(functools.partial(block, opt, angles), x))


def block(opt, angles, weights, x):
    y = rms_norm(weights, "norm1", x)
    query = rotated(split_heads(linear(weights, "query", y), opt.shape.heads), angles)
    key = rotated(split_heads(linear(weights, "key", y), opt.shape.key_value_heads), angles)
    value = split_heads(linear(weights, "value", y), opt.shape.key_value_heads)
    x = x + linear(weights, "out", attention(opt)(query, key, value, causal=True).reshape(x.shape))
    return x + swiglu(weights, rms_norm(weights, "norm2", x))


def swiglu(weights, x):
    """Return the MLP whose hidden layer is gated by SiLU (Shazeer 2020)."""
    gate = jax.nn.silu(linear(weights, "gate", x))
    return linear(weights, "down", gate * linear(weights, "up", x))


def rms_norm(weights, name, x):
    """Divide the last axis by its root mean square (Zhang and Sennrich 2019), in float32."""
    with jax.named_scope(name + ".rms_norm"):
        wide = x.astype(jnp.float32)
        normal = wide * lax.rsqrt(jnp.square(wide).mean(-1, keepdims=True) + NORM_EPSILON)
        return (normal * weights[name + ".scale"].astype(jnp.float32)).astype(x.dtype)


def rotary_angles(width, length):
    """Return the cosines and sines of every position, for half of a head's width."""
    half = width // 2
    angles = np.outer(np.arange(length), ROTARY_BASE ** (-np.arange(half) / half))
    return tuple(function(angles)[:, None, :].astype(np.float32) for function in (np.cos, np.sin))


def rotated(x, angles):
    """Turn each pair of elements by its position's angle (Su et al. 2021); pairs lie half a head apart."""
    cosine, sine = angles
    one, other = jnp.split(x.astype(jnp.float32), 2, axis=-1)
    turned = jnp.concatenate([one * cosine - other * sine, other * cosine + one * sine], axis=-1)
    return turned.astype(x.dtype)


def deviation(name):
    return INITIAL_DEVIATION


def build(opt):
    return transformer.Decoder(opt, shapes(opt.shape), hidden, deviation, head="head.weight")


if __name__ == "__main__":
    SPEC.main(transformer, build)
