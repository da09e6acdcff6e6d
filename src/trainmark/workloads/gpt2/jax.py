"""Training GPT-2 in plain JAX: the model, and main; data and step are those of all transformers."""

import functools
import math

import jax
from jax import numpy as jnp

from trainmark.workloads.gpt2.shared import INITIAL_DEVIATION, NORM_EPSILON, SPEC, shapes
from trainmark.workloads.transformers.frameworks import jax as transformer
from trainmark.workloads.transformers.frameworks.jax_layers import (
    attention,
    embedding,
    layer_norm,
    linear,
    split_heads,
)

# The model

norm = functools.partial(layer_norm, epsilon=NORM_EPSILON)


def hidden(opt, weights, blocks, tokens):
    """Return the hidden states that the head takes."""
    places = weights["position_embedding.weight"][: tokens.shape[1]].astype(jnp.float32)
    x = embedding(weights["token_embedding.weight"], tokens)
    x = blocks(functools.partial(block, opt), (x + places).astype(x.dtype))
    return norm(weights, "norm", x)


def block(opt, weights, x):
    parts = jnp.split(linear(weights, "qkv", norm(weights, "norm1", x)), 3, axis=-1)
    query, key, value = (split_heads(part, opt.shape.heads) for part in parts)
    x = x + linear(weights, "out", attention(opt)(query, key, value, causal=True).reshape(x.shape))
    return x + linear(weights, "down", jax.nn.gelu(linear(weights, "up", norm(weights, "norm2", x))))


def deviation(layers, name):
    """Return that of a matrix as in the paper: what enters the residual stream is made smaller."""
    small = name.endswith(("out.weight", "down.weight"))
    return INITIAL_DEVIATION / (math.sqrt(2 * layers) if small else 1.0)


def build(opt):
    deviations = functools.partial(deviation, opt.shape.layers)
    return transformer.Decoder(opt, shapes(opt.shape), hidden, deviations, head="token_embedding.weight")


if __name__ == "__main__":
    SPEC.main(transformer, build)
