"""The networks of the families in float64, each a page to be read beside its paper.

A network takes its parts and a batch, and returns the loss.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import ModuleType
from typing import Any

import numpy as np

from trainmark.workloads.common import layers64 as layer
from trainmark.workloads.common.layers64 import Array, Layer, Tape, TapeValue
from trainmark.workloads.transformers.flops import TransformerShape


class Parts:
    """Layers with their weights by canonical names; a call applies a layer that has none.

    `model` is the family's module of constants.
    """

    def __init__(
        self, tape: Tape, weights: Mapping[str, TapeValue], model: ModuleType, shape: TransformerShape
    ) -> None:
        self.tape, self.weights, self.model, self.shape = tape, weights, model, shape

    def __call__(self, applied: Layer, *inputs: TapeValue, **constants: Any) -> TapeValue:
        return self.tape(applied, *inputs, **constants)

    def embedding(self, name: str, ids: Array) -> TapeValue:
        return self.tape(layer.embedding, self.weights[f"{name}.weight"], ids=ids)

    def linear(self, name: str, x: TapeValue) -> TapeValue:
        names = (f"{name}.weight", f"{name}.bias")
        return self.tape(layer.linear, x, *(self.weights[part] for part in names if part in self.weights))

    def norm(self, name: str, x: TapeValue) -> TapeValue:
        scale, bias = self.weights[f"{name}.scale"], self.weights.get(f"{name}.bias")
        if bias is None:
            return self.tape(layer.rms_norm, x, scale, epsilon=self.model.NORM_EPSILON)
        return self.tape(layer.layer_norm, x, scale, bias, epsilon=self.model.NORM_EPSILON)

    def heads(self, x: TapeValue, heads: int) -> TapeValue:
        return self.tape(layer.split_heads, x, heads=heads)

    def attention(self, query: TapeValue, key: TapeValue, value: TapeValue, allowed: Array) -> TapeValue:
        """Attend with split heads and merge them."""
        return self.tape(layer.merge_heads, self.tape(layer.attention, query, key, value, allowed=allowed))

    def qkv_attention(self, block: str, x: TapeValue, allowed: Array) -> TapeValue:
        """Self-attention whose query, key and value come from one matrix, in that order."""
        together = self.linear(f"{block}.qkv", x)
        query, key, value = (
            self.heads(self.tape(layer.part, together, index=index, parts=3), self.shape.heads)
            for index in range(3)
        )
        return self.linear(f"{block}.out", self.attention(query, key, value, allowed))

    def mlp(self, block: str, x: TapeValue, activation: Layer) -> TapeValue:
        return self.linear(f"{block}.down", self.tape(activation, self.linear(f"{block}.up", x)))


def positions(tokens: Array) -> Array:
    """Number the tokens of every sequence from 0."""
    return np.broadcast_to(np.arange(tokens.shape[1]), tokens.shape)


def causal(tokens: int) -> Array:
    """Return which keys (columns) a query (row) sees: its own token and those before."""
    return np.tri(tokens, dtype=bool)


def within(lengths: Array, tokens: int) -> Array:
    """Return which keys every query of a sequence sees: those that are not padding."""
    return (np.arange(tokens) < lengths[:, None])[:, None, None, :]


# GPT-2: pre-norm blocks, learned positions, GELU by tanh, a head tied to the token embedding.


def gpt2_loss(net: Parts, batch: Sequence[Array]) -> TapeValue:
    """Mean cross entropy of a batch of (tokens, targets)."""
    tokens, targets = batch
    places = positions(tokens)
    x = net(
        layer.addition, net.embedding("token_embedding", tokens), net.embedding("position_embedding", places)
    )
    for index in range(net.shape.layers):
        x = gpt2_block(net, f"blocks.{index}", x)
    return net(layer.cross_entropy, gpt2_head(net, net.norm("norm", x)), labels=targets)


def gpt2_block(net: Parts, name: str, x: TapeValue) -> TapeValue:
    allowed = causal(x.array.shape[1])
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
    return net.linear(f"{name}.out", net.attention(query, key, value, causal(x.array.shape[1])))


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
    places = net.embedding("position_embedding", positions(tokens))
    x = net(layer.addition, net.embedding("token_embedding", tokens), places)
    return net.norm("embedding_norm", net(layer.addition, x, net.embedding("segment_embedding", segments)))


def bert_block(net: Parts, name: str, x: TapeValue, lengths: Array) -> TapeValue:
    allowed = within(lengths, x.array.shape[1])
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
