"""Training GPT-2 in MindSpore: the model, and main; data and step are those of all transformers."""

import math

from trainmark.workloads.transformers.frameworks import mindspore as transformer  # before its own import

# isort: split
import mindspore as ms
import numpy as np
from mindspore import nn, ops

from trainmark.workloads.gpt2.shared import INITIAL_DEVIATION, NORM_EPSILON, SPEC

# The model


class Block(nn.Cell):
    def __init__(self, opt):
        super().__init__()
        width, hidden = opt.shape.width, opt.shape.hidden
        # What enters the residual stream starts smaller.
        residual = INITIAL_DEVIATION / math.sqrt(2 * opt.shape.layers)
        self.norm1 = transformer.norm(width, NORM_EPSILON)
        self.qkv = transformer.linear(width, 3 * width, INITIAL_DEVIATION)
        self.attention = transformer.Attention(opt)
        self.out = transformer.linear(width, width, residual)
        self.norm2 = transformer.norm(width, NORM_EPSILON)
        self.up = transformer.linear(width, hidden, INITIAL_DEVIATION)
        self.down = transformer.linear(hidden, width, residual)

    def construct(self, x, mask):
        x = x + self.out(self.attention(self.qkv(self.norm1(x)), mask))
        return x + self.down(ops.gelu(self.up(self.norm2(x)), approximate="tanh"))


class GPT2(nn.Cell):
    """From tokens to the hidden states that the head takes."""

    def __init__(self, opt):
        super().__init__()
        shape = opt.shape
        self.token_embedding = transformer.embedding(shape.vocabulary, shape.width, INITIAL_DEVIATION)
        self.position_embedding = transformer.embedding(shape.positions, shape.width, INITIAL_DEVIATION)
        self.blocks = transformer.make_blocks(opt, [Block(opt) for _ in range(shape.layers)])
        self.norm = transformer.norm(shape.width, NORM_EPSILON)
        self.places = ms.Tensor(np.arange(opt.length), ms.int32)
        self.mask = transformer.causal_mask(opt)

    def construct(self, tokens):
        x = self.token_embedding(tokens) + self.position_embedding(self.places)
        for block in self.blocks:
            x = block(x, self.mask)
        return self.norm(x)

    def head(self):
        return self.token_embedding.embedding_table


def build(opt):
    return transformer.Decoder(opt, GPT2(opt))


if __name__ == "__main__":
    SPEC.main(transformer, build)
