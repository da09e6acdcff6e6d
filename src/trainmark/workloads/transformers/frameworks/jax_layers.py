"""Layers of transformers in plain JAX; sums over many tokens are taken in float32 whatever the precision.

Scopes name the layers in profiles; what is compiled is the same without them.
"""

import functools
import math

import jax
from jax import lax
from jax import numpy as jnp

FLOAT32 = jnp.float32


def linear(weights, name, x):
    """Multiply the last axis by a weight of (outputs, inputs), and add the bias where there is one."""
    with jax.named_scope(name):
        y = product(x, weights[name + ".weight"])
        bias = weights.get(name + ".bias")
        return y if bias is None else add_bias(y, bias)


def product(x, weight):
    return lax.dot_general(x, weight, (((x.ndim - 1,), (1,)), ((), ())))


@jax.custom_vjp
def add_bias(x, bias):
    return x + bias


def _add_bias_backward(_, gradient):
    # JAX would sum the tokens in the numbers of the gradient, and bfloat16 counts no further than 256.
    rows = gradient.astype(FLOAT32).reshape(-1, gradient.shape[-1])
    return gradient, rows.sum(0).astype(gradient.dtype)


add_bias.defvjp(lambda x, bias: (x + bias, None), _add_bias_backward)


@jax.custom_vjp
def embedding(table, ids):
    return table[ids]


def _embedding_backward(saved, gradient):
    like, ids = saved
    total = jnp.zeros(like.shape, FLOAT32).at[ids].add(gradient.astype(FLOAT32))
    return total.astype(gradient.dtype), None


embedding.defvjp(lambda table, ids: (table[ids], (table, ids)), _embedding_backward)


def layer_norm(weights, name, x, epsilon):
    """Normalise the last axis by its mean and variance (Ba et al. 2016), in float32."""
    with jax.named_scope(name + ".layer_norm"):
        wide = x.astype(FLOAT32)
        centred = wide - wide.mean(-1, keepdims=True)
        normal = centred * lax.rsqrt(jnp.square(centred).mean(-1, keepdims=True) + epsilon)
        scale, bias = (weights[name + part].astype(FLOAT32) for part in (".scale", ".bias"))
        return (normal * scale + bias).astype(x.dtype)


def split_heads(x, heads):
    """From (sequences, tokens, width) to (sequences, tokens, heads, width of a head)."""
    return x.reshape((*x.shape[:2], heads, -1))


def attention_name(opt):
    """Return which attention is used: cuDNN's flash attention on a GPU in halves, else JAX's own."""
    # JAX's own asks for a product of float16 that XLA does not have on CPUs.
    if opt.engine == "plain" or (opt.device == "cpu" and opt.precision == "amp"):
        return "written out"
    return "cudnn" if opt.device == "cuda" and opt.precision in ("amp", "bf16") else "xla"


def attention(opt):
    """Return the attention of (sequences, tokens, heads, head width); key and value heads may be fewer.

    `lengths`, where given, are the keys of each sequence that are no padding.
    """
    name = attention_name(opt)
    function = written_out_attention if name == "written out" else functools.partial(fused_attention, name)

    def scoped(query, key, value, causal, lengths=None):
        with jax.named_scope("attention"):
            return function(query, key, value, causal, lengths)

    return scoped


def fused_attention(implementation, query, key, value, causal, lengths=None):
    return jax.nn.dot_product_attention(
        *(query, key, value),
        is_causal=causal,
        query_seq_lengths=None if lengths is None else jnp.full_like(lengths, query.shape[1]),
        key_value_seq_lengths=lengths,
        implementation=implementation,
    )


def written_out_attention(query, key, value, causal, lengths=None):
    """Return softmax(QKᵀ/√d)V in single operations, the softmax in float32."""
    repeats = query.shape[2] // key.shape[2]
    key, value = (jnp.repeat(part, repeats, axis=2) for part in (key, value))
    scores = jnp.einsum("bqhd,bkhd->bhqk", query, key).astype(FLOAT32) / math.sqrt(query.shape[-1])
    places = jnp.arange(key.shape[1])
    if causal:
        scores = jnp.where(places[:, None] >= places, scores, -jnp.inf)
    if lengths is not None:
        scores = jnp.where(places < lengths[:, None, None, None], scores, -jnp.inf)
    return jnp.einsum("bhqk,bkhd->bqhd", jax.nn.softmax(scores).astype(value.dtype), value)


@jax.custom_vjp
def cross_entropies(logits, labels):
    """Return each label's cross entropy in float32, 0 where it is -1; backward needs the logits alone."""
    return _cross_entropies_forward(logits, labels)[0]


def _cross_entropies_forward(logits, labels):
    logarithms = jax.nn.logsumexp(logits.astype(FLOAT32), axis=-1)
    right = jnp.take_along_axis(logits, jnp.maximum(labels, 0)[..., None], axis=-1)[..., 0]
    losses = jnp.where(labels >= 0, logarithms - right.astype(FLOAT32), 0.0)
    return losses, (logits, labels, logarithms)


def _cross_entropies_backward(saved, gradient):
    logits, labels, logarithms = saved
    shares = jnp.exp(logits.astype(FLOAT32) - logarithms[..., None])
    right = lax.broadcasted_iota(labels.dtype, logits.shape, logits.ndim - 1) == labels[..., None]
    gradient = jnp.where(labels >= 0, gradient, 0.0)[..., None]
    return ((shares - right) * gradient).astype(logits.dtype), None


cross_entropies.defvjp(_cross_entropies_forward, _cross_entropies_backward)
