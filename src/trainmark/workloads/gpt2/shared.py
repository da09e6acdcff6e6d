"""GPT-2: its sizes, every tensor under its canonical name, and what the loop must know.

A linear layer's weight is (outputs, inputs). `qkv` gives query, key and value, in that order, one behind the
other. The head is the token embedding's matrix.
"""

from trainmark.workloads.transformers.flops import TransformerShape
from trainmark.workloads.transformers.spec import DecoderSpec, in_blocks, linear, norm

NORM_EPSILON = 1e-5
INITIAL_DEVIATION = 0.02  # of all matrices; `out` and `down` divide it by sqrt(2 · layers), as the paper does


def _size(layers, heads, width, vocabulary=50304):
    # 50,304 is 50,257 rounded up to a multiple of 64: nanoGPT's and llm.c's choice, for the matrix units.
    return TransformerShape(layers, width, heads, heads, 4 * width, vocabulary, positions=1024)


SIZES = {
    "124m": _size(12, 12, 768),
    "355m": _size(24, 16, 1024),
    "774m": _size(36, 20, 1280),
    "1558m": _size(48, 25, 1600),
    "mini": _size(2, 4, 128, vocabulary=512),
}


def shapes(shape):
    """Return the shape of every tensor by its canonical name, in the order of the forward pass."""
    width, hidden = shape.width, shape.hidden
    block = {
        **norm("norm1", width),
        **linear("qkv", width, 3 * width),
        **linear("out", width, width),
        **norm("norm2", width),
        **linear("up", width, hidden),
        **linear("down", hidden, width),
    }
    return {
        "token_embedding.weight": (shape.vocabulary, width),
        "position_embedding.weight": (shape.positions, width),
        **in_blocks(shape.layers, block),
        **norm("norm", width),
    }


SPEC = DecoderSpec("gpt2", "GPT-2", SIZES, shapes, recipe="nanogpt", length=1024)
