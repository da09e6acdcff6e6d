"""What the networks of the three families have in common, over layers64."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from trainmark.workloads.transformers.conformance import layers64 as layer
from trainmark.workloads.transformers.conformance.layers64 import Array
from trainmark.workloads.transformers.conformance.tape64 import Layer, Tape, Value
from trainmark.workloads.transformers.shape import Shape


class Parts:
    """Layers with their weights by canonical names; a call applies a layer that has none."""

    def __init__(self, tape: Tape, weights: Mapping[str, Value], shape: Shape, epsilon: float) -> None:
        self.tape, self.weights, self.shape, self.epsilon = tape, weights, shape, epsilon

    def __call__(self, applied: Layer, *inputs: Value, **constants: Any) -> Value:
        return self.tape(applied, *inputs, **constants)

    def embedding(self, name: str, ids: Array) -> Value:
        return self.tape(layer.embedding, self.weights[f"{name}.weight"], ids=ids)

    def linear(self, name: str, x: Value) -> Value:
        names = (f"{name}.weight", f"{name}.bias")
        return self.tape(layer.linear, x, *(self.weights[part] for part in names if part in self.weights))

    def norm(self, name: str, x: Value) -> Value:
        scale, bias = self.weights[f"{name}.scale"], self.weights.get(f"{name}.bias")
        if bias is None:
            return self.tape(layer.rms_norm, x, scale, epsilon=self.epsilon)
        return self.tape(layer.layer_norm, x, scale, bias, epsilon=self.epsilon)

    def heads(self, x: Value, heads: int) -> Value:
        return self.tape(layer.split_heads, x, heads=heads)

    def attention(self, query: Value, key: Value, value: Value, allowed: Array) -> Value:
        """Attend with split heads and merge them."""
        return self.tape(layer.merge_heads, self.tape(layer.attention, query, key, value, allowed=allowed))

    def qkv_attention(self, block: str, x: Value, allowed: Array) -> Value:
        """Self-attention whose query, key and value come from one matrix, in that order."""
        together = self.linear(f"{block}.qkv", x)
        query, key, value = (
            self.heads(self.tape(layer.part, together, index=index, parts=3), self.shape.heads)
            for index in range(3)
        )
        return self.linear(f"{block}.out", self.attention(query, key, value, allowed))

    def mlp(self, block: str, x: Value, activation: Layer) -> Value:
        return self.linear(f"{block}.down", self.tape(activation, self.linear(f"{block}.up", x)))


def positions(tokens: Array) -> Array:
    """Number the tokens of every sequence from 0."""
    return np.broadcast_to(np.arange(tokens.shape[1]), tokens.shape)
