"""The networks of the families in float64, each a page to be read beside its paper.

A network takes its parts and a batch, and returns the loss.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from trainmark.workloads.transformers.conformance import layers64 as layer
from trainmark.workloads.transformers.conformance.layers64 import Array, Parts, TapeValue

# GPT-2: pre-norm blocks, learned positions, GELU by tanh, a head tied to the token embedding.


def gpt2_loss(net: Parts, batch: Sequence[Array]) -> TapeValue:
    """Mean cross entropy of a batch of (tokens, targets)."""
    tokens, targets = batch
    places = layer.positions(tokens)
    x = net(
        layer.addition, net.embedding("token_embedding", tokens), net.embedding("position_embedding", places)
    )
    for index in range(net.shape.layers):
        x = gpt2_block(net, f"blocks.{index}", x)
    return net(layer.cross_entropy, gpt2_head(net, net.norm("norm", x)), labels=targets)


def gpt2_block(net: Parts, name: str, x: TapeValue) -> TapeValue:
    allowed = layer.causal(x.array.shape[1])
    x = net(layer.addition, x, net.qkv_attention(name, net.norm(f"{name}.norm1", x), allowed))
    return net(layer.addition, x, net.mlp(name, net.norm(f"{name}.norm2", x), layer.gelu_tanh))


def gpt2_head(net: Parts, x: TapeValue) -> TapeValue:
    return net(layer.linear, x, net.weights["token_embedding.weight"])


# A Llama-shaped decoder: RMSNorm, rotary positions, grouped-query attention, SwiGLU, its own head.


def llama_loss(net: Parts, batch: Sequence[Array]) -> TapeValue:
    """Mean cross entropy of a batch of (tokens, targets)."""
    tokens, targets = batch
    x = net.embedding("token_embedding", tokens)
    for index in range(net.shape.layers):
        x = llama_block(net, f"blocks.{index}", x)
    return net(layer.cross_entropy, net.linear("head", net.norm("norm", x)), labels=targets)


def llama_block(net: Parts, name: str, x: TapeValue) -> TapeValue:
    x = net(layer.addition, x, self_attention(net, name, net.norm(f"{name}.norm1", x)))
    return net(layer.addition, x, swiglu(net, name, net.norm(f"{name}.norm2", x)))


def self_attention(net: Parts, name: str, x: TapeValue) -> TapeValue:
    """Causal attention; queries and keys carry their positions by rotation."""
    query = net.heads(net.linear(f"{name}.query", x), net.shape.heads)
    key = net.heads(net.linear(f"{name}.key", x), net.shape.key_value_heads)
    value = net.heads(net.linear(f"{name}.value", x), net.shape.key_value_heads)
    query, key = (net(layer.rotary, split, base=net.model.ROTARY_BASE) for split in (query, key))
    return net.linear(f"{name}.out", net.attention(query, key, value, layer.causal(x.array.shape[1])))


def swiglu(net: Parts, name: str, x: TapeValue) -> TapeValue:
    """Shazeer 2020: SiLU is applied to the gate alone."""
    gate = net(layer.silu, net.linear(f"{name}.gate", x))
    return net.linear(f"{name}.down", net(layer.product, gate, net.linear(f"{name}.up", x)))


# BERT's pre-training: post-norm blocks, exact GELU, masked tokens and the next sentence.


def bert_loss(net: Parts, batch: Sequence[Array]) -> TapeValue:
    """Sum of the two losses of (tokens, segments, lengths, positions, labels, next_sentence)."""
    tokens, segments, lengths, positions, labels, next_sentence = batch
    x = embedded(net, tokens, segments)
    for index in range(net.shape.layers):
        x = bert_block(net, f"blocks.{index}", x, lengths)
    return net(layer.addition, masked_loss(net, x, positions, labels), sentence_loss(net, x, next_sentence))


def embedded(net: Parts, tokens: Array, segments: Array) -> TapeValue:
    places = net.embedding("position_embedding", layer.positions(tokens))
    x = net(layer.addition, net.embedding("token_embedding", tokens), places)
    return net.norm("embedding_norm", net(layer.addition, x, net.embedding("segment_embedding", segments)))


def bert_block(net: Parts, name: str, x: TapeValue, lengths: Array) -> TapeValue:
    allowed = layer.within(lengths, x.array.shape[1])
    x = net.norm(f"{name}.norm1", net(layer.addition, x, net.qkv_attention(name, x, allowed)))
    return net.norm(f"{name}.norm2", net(layer.addition, x, net.mlp(name, x, layer.gelu_erf)))


def masked_loss(net: Parts, x: TapeValue, positions: Array, labels: Array) -> TapeValue:
    """Cross entropy of the masked tokens, by a head that ends in the token embedding's matrix."""
    x = net(layer.gelu_erf, net.linear("transform", net(layer.gather, x, positions=positions)))
    tied = net.weights["token_embedding.weight"], net.weights["head.bias"]
    return net(layer.cross_entropy, net(layer.linear, net.norm("transform_norm", x), *tied), labels=labels)


def sentence_loss(net: Parts, x: TapeValue, next_sentence: Array) -> TapeValue:
    """Cross entropy of whether the second segment follows the first, by the first token."""
    first = net(layer.gather, x, positions=np.zeros((len(next_sentence), 1), np.int64))
    pooled = net(layer.tanh, net.linear("pooler", first))
    return net(layer.cross_entropy, net.linear("next_sentence", pooled), labels=next_sentence)
