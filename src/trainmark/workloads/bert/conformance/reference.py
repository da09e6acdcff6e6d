"""BERT's pre-training in float64: post-norm blocks, exact GELU, masked tokens and the next sentence.

python -m trainmark.workloads.bert.conformance.reference     writes reference.json anew
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from trainmark.workloads.bert.shared import model
from trainmark.workloads.transformers.conformance import layers64
from trainmark.workloads.transformers.conformance import layers64 as layer
from trainmark.workloads.transformers.conformance.layers64 import Array, Parts, Tape, TapeValue
from trainmark.workloads.transformers.conformance.reference import write
from trainmark.workloads.transformers.flops import TransformerShape


def loss(
    tape: Tape, weights: Mapping[str, TapeValue], batch: Sequence[Array], shape: TransformerShape
) -> TapeValue:
    """Sum of the two losses of (tokens, segments, lengths, positions, labels, next_sentence)."""
    tokens, segments, lengths, positions, labels, next_sentence = batch
    net = Parts(tape, weights, shape, model.NORM_EPSILON)
    x = embedded(net, tokens, segments)
    for index in range(shape.layers):
        x = block(net, f"blocks.{index}", x, lengths)
    return net(layer.addition, masked_loss(net, x, positions, labels), sentence_loss(net, x, next_sentence))


def embedded(net: Parts, tokens: Array, segments: Array) -> TapeValue:
    places = net.embedding("position_embedding", layers64.positions(tokens))
    x = net(layer.addition, net.embedding("token_embedding", tokens), places)
    return net.norm("embedding_norm", net(layer.addition, x, net.embedding("segment_embedding", segments)))


def block(net: Parts, name: str, x: TapeValue, lengths: Array) -> TapeValue:
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


if __name__ == "__main__":
    write("bert")
