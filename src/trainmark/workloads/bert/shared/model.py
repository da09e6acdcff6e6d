"""BERT for pre-training: its sizes, and every tensor under its canonical name.

A linear layer's weight is (outputs, inputs). `qkv` gives query, key and value, in that order, one behind the
other. Norms come after the sums (post-norm), GELU is the exact one (erf), the MLM head ends in the token
embedding's matrix.
"""

from trainmark.workloads.transformers.flops import TransformerShape

NORM_EPSILON = 1e-12
INITIAL_DEVIATION = 0.02
SEGMENTS = 2


def _size(layers, heads, width, vocabulary=30528):
    # 30,528 is 30,522 rounded up to a multiple of 8, as NVIDIA's trainings do for the matrix units.
    return TransformerShape(layers, width, heads, heads, 4 * width, vocabulary, positions=512, causal=False)


SIZES = {"base": _size(12, 12, 768), "large": _size(24, 16, 1024), "mini": _size(2, 4, 128, vocabulary=512)}


def predictions(length):
    """Return how many tokens of a sequence are masked at most: 20 of 128 and 80 of 512, as is usual."""
    return {128: 20, 512: 80}.get(length, max(1, round(0.15 * length)))


def shapes(shape):
    """Return the shape of every tensor by its canonical name, in the order of the forward pass."""
    width, hidden = shape.width, shape.hidden
    tensors = {
        "token_embedding.weight": (shape.vocabulary, width),
        "position_embedding.weight": (shape.positions, width),
        "segment_embedding.weight": (SEGMENTS, width),
        "embedding_norm.scale": (width,),
        "embedding_norm.bias": (width,),
    }
    for index in range(shape.layers):
        block = {
            "qkv.weight": (3 * width, width),
            "qkv.bias": (3 * width,),
            "out.weight": (width, width),
            "out.bias": (width,),
            "norm1.scale": (width,),
            "norm1.bias": (width,),
            "up.weight": (hidden, width),
            "up.bias": (hidden,),
            "down.weight": (width, hidden),
            "down.bias": (width,),
            "norm2.scale": (width,),
            "norm2.bias": (width,),
        }
        tensors.update(("blocks.{}.{}".format(index, name), value) for name, value in block.items())
    tensors.update(
        {
            "pooler.weight": (width, width),
            "pooler.bias": (width,),
            "next_sentence.weight": (2, width),
            "next_sentence.bias": (2,),
            "transform.weight": (width, width),
            "transform.bias": (width,),
            "transform_norm.scale": (width,),
            "transform_norm.bias": (width,),
            "head.bias": (shape.vocabulary,),
        }
    )
    return tensors
