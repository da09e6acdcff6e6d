"""Training BERT in plain JAX: the model, and main; data and step are those of all transformers."""

import functools

import jax
from jax import numpy as jnp

from trainmark.workloads.bert.shared import INITIAL_DEVIATION, NORM_EPSILON, SEGMENTS, SPEC, shapes
from trainmark.workloads.transformers.frameworks import jax as transformer
from trainmark.workloads.transformers.frameworks.jax_layers import (
    add_bias,
    attention,
    cross_entropies,
    embedding,
    layer_norm,
    linear,
    product,
    split_heads,
)

# The model

norm = functools.partial(layer_norm, epsilon=NORM_EPSILON)
gelu = functools.partial(jax.nn.gelu, approximate=False)


def hidden(opt, weights, blocks, tokens, segments, lengths):
    """Return the hidden states of all tokens."""
    x = embedding(weights["token_embedding.weight"], tokens)
    places = weights["position_embedding.weight"][: tokens.shape[1]].astype(jnp.float32)
    # A product, as its gradient is one too: a scatter of all tokens into two rows would be slow.
    kinds = jax.nn.one_hot(segments, SEGMENTS, dtype=x.dtype) @ weights["segment_embedding.weight"]
    x = norm(weights, "embedding_norm", (x + places + kinds).astype(x.dtype))
    return blocks(functools.partial(block, opt), x, jnp.maximum(lengths, 1) if opt.padded else None)


def block(opt, weights, x, lengths):
    """Post-norm: each half is normed after its sum."""
    parts = jnp.split(linear(weights, "qkv", x), 3, axis=-1)
    query, key, value = (split_heads(part, opt.shape.heads) for part in parts)
    y = attention(opt)(query, key, value, causal=False, lengths=lengths).reshape(x.shape)
    x = norm(weights, "norm1", x + linear(weights, "out", y))
    return norm(weights, "norm2", x + linear(weights, "down", gelu(linear(weights, "up", x))))


def masked_logits(weights, x):
    x = norm(weights, "transform_norm", gelu(linear(weights, "transform", x)))
    return add_bias(product(x, weights["token_embedding.weight"]), weights["head.bias"])


def sentence_logits(weights, x):
    pooled = jnp.tanh(linear(weights, "pooler", x[:, 0]))
    return linear(weights, "next_sentence", pooled).astype(jnp.float32)


def at_positions(x, positions):
    """Return the hidden states at the positions of each sequence, by a product, as is the gradient."""
    return jnp.einsum("npt,ntw->npw", jax.nn.one_hot(positions, x.shape[1], dtype=x.dtype), x)


def labels_of_all(tokens, positions, labels):
    """Return a label for each token, -1 for those that are not masked; so are positions that fill up."""
    return jnp.full_like(tokens, -1).at[jnp.arange(len(tokens))[:, None], positions].max(labels)


class Pretraining:
    """The network with the losses of both heads."""

    def __init__(self, opt):
        self.opt, self.shapes = opt, shapes(opt.shape)
        self.hidden = functools.partial(hidden, opt)

    @staticmethod
    def deviation(name):
        return INITIAL_DEVIATION

    def loss(self, weights, blocks, batch, masked, sequences):
        """Return a micro-batch's share of the loss."""
        tokens, segments, lengths, positions, labels, next_sentence = batch
        x = self.hidden(weights, blocks, tokens, segments, lengths)
        sentence = cross_entropies(sentence_logits(weights, x), next_sentence)
        if self.opt.predictions == "all":
            labels = labels_of_all(tokens, positions, labels)
        else:
            x = at_positions(x, positions)
        losses = cross_entropies(masked_logits(weights, x), labels)
        return losses.sum(-1).sum() / masked + sentence.sum() / sequences

    @staticmethod
    def normalizers(tokens, segments, lengths, positions, labels, next_sentence):
        """Return by what a step's losses are divided: masked tokens, and sequences with a next sentence."""
        return tuple(jnp.maximum((part >= 0).sum(), 1) for part in (labels, next_sentence))

    def evaluate(self, weights, blocks, tokens, segments, lengths, positions, labels, next_sentence):
        """Return the counts of each sequence that `BertSpec.evaluation` adds up."""
        x = self.hidden(weights, blocks, tokens, segments, lengths)
        logits = masked_logits(weights, at_positions(x, positions))
        counts = (
            cross_entropies(logits, labels).sum(-1),
            (labels >= 0).sum(-1),
            (logits.argmax(-1) == labels).sum(-1),
            sentence_logits(weights, x).argmax(-1) == next_sentence,
            next_sentence >= 0,
        )
        return jnp.stack([count.astype(jnp.float32) for count in counts], -1)


if __name__ == "__main__":
    SPEC.main(transformer, Pretraining)
