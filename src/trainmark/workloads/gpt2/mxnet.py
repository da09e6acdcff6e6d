"""Training GPT-2 in MXNet (Gluon): the model, and main; data and step are those of all transformers."""

import functools
import math

from mxnet.gluon import nn

from trainmark.workloads.gpt2.shared import INITIAL_DEVIATION, NORM_EPSILON, SPEC
from trainmark.workloads.transformers.frameworks import mxnet as transformer
from trainmark.workloads.transformers.frameworks.mxnet import embedding, linear

# The model


class Block(nn.HybridBlock):
    def __init__(self, opt):
        super().__init__()
        width, hidden, heads = opt.shape.width, opt.shape.hidden, opt.shape.heads
        residual = INITIAL_DEVIATION / math.sqrt(2 * opt.shape.layers)  # of what enters the residual stream
        self.norm1, self.norm2 = layer_norm(width), layer_norm(width)
        self.qkv, self.out = linear(width, 3 * width, INITIAL_DEVIATION), linear(width, width, residual)
        self.up, self.down = linear(width, hidden, INITIAL_DEVIATION), linear(hidden, width, residual)
        self.attention = functools.partial(transformer.attention(opt), heads=heads)

    def hybrid_forward(self, F, x, lengths):  # noqa: N803 - Gluon passes the array or the symbol namespace
        x = x + self.out(self.attention(F, self.qkv(self.norm1(x)), lengths))
        return x + self.down(transformer.gelu_tanh(F, self.up(self.norm2(x))))


class GPT2(nn.HybridBlock):
    """From tokens, (length, sequences), to the hidden states that the head takes."""

    def __init__(self, opt):
        super().__init__()
        shape = opt.shape
        self.length, self.heads = opt.length, shape.heads
        self.token_embedding = embedding(shape.vocabulary, shape.width, INITIAL_DEVIATION)
        self.position_embedding = embedding(shape.positions, shape.width, INITIAL_DEVIATION)
        self.blocks = nn.HybridSequential()
        self.blocks.add(*(Block(opt) for _ in range(shape.layers)))
        self.norm = layer_norm(shape.width)

    def hybrid_forward(self, F, tokens):  # noqa: N803
        places = F.expand_dims(self.position_embedding(F.arange(self.length)), 1)
        x = F.broadcast_add(self.token_embedding(tokens), places)
        lengths = self.causal_lengths(F, tokens)
        for block in self.blocks:
            x = block(x, lengths)
        return self.norm(x)

    def causal_lengths(self, F, tokens):  # noqa: N803
        """Return how many keys each query sees: its own and those before, alike in all heads."""
        seen = F.reshape(F.arange(1, self.length + 1, dtype="int32"), (1, self.length))
        rows = F.repeat(F.transpose(tokens), self.heads, axis=0)
        return F.broadcast_like(seen, rows)


def layer_norm(width):
    return nn.LayerNorm(epsilon=NORM_EPSILON, in_channels=width)


def build(opt):
    return transformer.Decoder(GPT2(opt))


if __name__ == "__main__":
    SPEC.main(transformer, build)
