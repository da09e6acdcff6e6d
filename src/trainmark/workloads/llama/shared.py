"""A decoder of Llama 3's shape: its sizes, tensors by canonical name, and what the loop must know.

A linear layer's weight is (outputs, inputs). Rotary positions pair the first half of a head's width with the
second half, as `transformers` does, not even with odd elements. The head has its own matrix in every size.
"""

from trainmark.workloads.transformers.flops import TransformerShape
from trainmark.workloads.transformers.spec import DecoderSpec, in_blocks

NORM_EPSILON = 1e-5
ROTARY_BASE = 500000.0
INITIAL_DEVIATION = 0.02


def _size(layers, width, heads, key_value_heads, hidden, vocabulary=128256, positions=8192):
    grouped = width, heads, key_value_heads, hidden
    return TransformerShape(
        layers, *grouped, vocabulary=vocabulary, positions=positions, gated=True, tied=False
    )


SIZES = {
    "1b": _size(16, 2048, 32, 8, 8192),
    "8b": _size(32, 4096, 32, 8, 14336),
    "mini": _size(2, 128, 4, 2, 352, vocabulary=512),
}


def shapes(shape):
    """Return the shape of every tensor by its canonical name, in the order of the forward pass."""
    width, hidden, grouped = shape.width, shape.hidden, shape.key_value_width
    block = {
        "norm1.scale": (width,),
        "query.weight": (width, width),
        "key.weight": (grouped, width),
        "value.weight": (grouped, width),
        "out.weight": (width, width),
        "norm2.scale": (width,),
        "gate.weight": (hidden, width),
        "up.weight": (hidden, width),
        "down.weight": (width, hidden),
    }
    return {
        "token_embedding.weight": (shape.vocabulary, width),
        **in_blocks(shape.layers, block),
        "norm.scale": (width,),
        "head.weight": (shape.vocabulary, width),
    }


SPEC = DecoderSpec("llama", "Llama 3", SIZES, shapes, recipe="llama3", length=4096)
