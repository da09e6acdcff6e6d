"""GPT-2 in float64: pre-norm blocks, learned positions, GELU by tanh, a head tied to the token embedding.

python -m trainmark.workloads.gpt2.conformance.reference     writes reference.json anew
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from trainmark.workloads.gpt2.shared import model
from trainmark.workloads.transformers.conformance import layers64
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
    places = layers64.positions(tokens)
    x = net(
        layer.addition, net.embedding("token_embedding", tokens), net.embedding("position_embedding", places)
    )
    for index in range(shape.layers):
        x = block(net, f"blocks.{index}", x)
    return net(layer.cross_entropy, head(net, net.norm("norm", x)), labels=targets)


def block(net: Parts, name: str, x: TapeValue) -> TapeValue:
    allowed = layer.causal(x.array.shape[1])
    x = net(layer.addition, x, net.qkv_attention(name, net.norm(f"{name}.norm1", x), allowed))
    return net(layer.addition, x, net.mlp(name, net.norm(f"{name}.norm2", x), layer.gelu_tanh))


def head(net: Parts, x: TapeValue) -> TapeValue:
    return net(layer.linear, x, net.weights["token_embedding.weight"])


if __name__ == "__main__":
    write("gpt2")
