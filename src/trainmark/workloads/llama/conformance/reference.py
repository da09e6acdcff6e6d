"""A Llama-shaped decoder in float64: RMSNorm, rotary positions, grouped-query attention, SwiGLU, own head.

python -m trainmark.workloads.llama.conformance.reference     writes reference.json anew
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from trainmark.workloads.llama.shared import model
from trainmark.workloads.transformers.conformance import layers64 as layer
from trainmark.workloads.transformers.conformance.layers64 import Array, Parts, Tape, TapeValue
from trainmark.workloads.transformers.conformance.reference import write
from trainmark.workloads.transformers.flops import TransformerShape


def loss(
    tape: Tape, weights: Mapping[str, TapeValue], batch: Sequence[Array], shape: TransformerShape
) -> TapeValue:
    """Mean cross entropy of a batch of (tokens, targets)."""
    tokens, targets = batch
    net = Parts(tape, weights, shape, model.NORM_EPSILON)
    x = net.embedding("token_embedding", tokens)
    for index in range(shape.layers):
        x = block(net, f"blocks.{index}", x)
    return net(layer.cross_entropy, net.linear("head", net.norm("norm", x)), labels=targets)


def block(net: Parts, name: str, x: TapeValue) -> TapeValue:
    x = net(layer.addition, x, self_attention(net, name, net.norm(f"{name}.norm1", x)))
    return net(layer.addition, x, swiglu(net, name, net.norm(f"{name}.norm2", x)))


def self_attention(net: Parts, name: str, x: TapeValue) -> TapeValue:
    """Causal attention; queries and keys carry their positions by rotation."""
    query = net.heads(net.linear(f"{name}.query", x), net.shape.heads)
    key = net.heads(net.linear(f"{name}.key", x), net.shape.key_value_heads)
    value = net.heads(net.linear(f"{name}.value", x), net.shape.key_value_heads)
    query, key = (net(layer.rotary, split, base=model.ROTARY_BASE) for split in (query, key))
    return net.linear(f"{name}.out", net.attention(query, key, value, layer.causal(x.array.shape[1])))


def swiglu(net: Parts, name: str, x: TapeValue) -> TapeValue:
    """Shazeer 2020: SiLU is applied to the gate alone."""
    gate = net(layer.silu, net.linear(f"{name}.gate", x))
    return net.linear(f"{name}.down", net(layer.product, gate, net.linear(f"{name}.up", x)))


if __name__ == "__main__":
    write("llama")
