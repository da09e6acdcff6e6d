"""Training GPT-2 in Paddle: the model, and main; data and step are those of all transformers."""

import functools
import math

from trainmark.workloads.transformers.frameworks import paddle as transformer  # before Paddle's own import

# isort: split
import paddle
from paddle import nn
from paddle.nn import functional

from trainmark.workloads.gpt2.shared import INITIAL_DEVIATION, NORM_EPSILON, SPEC

# The model


class Block(nn.Layer):
    def __init__(self, opt):
        super().__init__()
        width, hidden = opt.shape.width, opt.shape.hidden
        # What enters the residual stream starts smaller.
        residual = INITIAL_DEVIATION / math.sqrt(2 * opt.shape.layers)
        self.heads = opt.shape.heads
        self.norm1, self.norm2 = (nn.LayerNorm(width, epsilon=NORM_EPSILON) for _ in range(2))
        self.qkv = transformer.linear(width, 3 * width, INITIAL_DEVIATION)
        self.out = transformer.linear(width, width, residual)
        self.up = transformer.linear(width, hidden, INITIAL_DEVIATION)
        self.down = transformer.linear(hidden, width, residual)
        self.attention = functools.partial(transformer.attention(opt), causal=True)

    def forward(self, x):
        batch, length, width = x.shape
        parts = self.qkv(self.norm1(x)).reshape([batch, length, 3, self.heads, width // self.heads])
        query, key, value = parts.unbind(2)
        x = x + self.out(self.attention(query, key, value).reshape([batch, length, width]))
        return x + self.down(functional.gelu(self.up(self.norm2(x)), approximate=True))


class GPT2(nn.Layer):
    """From tokens to the hidden states that the head takes."""

    def __init__(self, opt):
        super().__init__()
        shape = opt.shape
        self.token_embedding = transformer.embedding(shape.vocabulary, shape.width, INITIAL_DEVIATION)
        self.position_embedding = transformer.embedding(shape.positions, shape.width, INITIAL_DEVIATION)
        self.blocks = nn.LayerList([Block(opt) for _ in range(shape.layers)])
        self.norm = nn.LayerNorm(shape.width, epsilon=NORM_EPSILON)
        self.run_block = transformer.block_runner(opt)

    def forward(self, tokens):
        places = paddle.arange(tokens.shape[1])
        x = self.token_embedding(tokens) + self.position_embedding(places)
        for block in self.blocks:
            x = self.run_block(block, x)
        return self.norm(x)

    @property
    def head(self):
        return self.token_embedding.weight


def build(opt):
    return transformer.Decoder(opt, GPT2(opt))


if __name__ == "__main__":
    SPEC.main(transformer, build)
