"""Training GPT-2 in OneFlow: the model, and main; data and step are those of all transformers."""

import math

from trainmark.workloads.transformers.frameworks import oneflow as transformer  # joins the ranks

# isort: split
import oneflow as flow
from oneflow import nn

from trainmark.workloads.gpt2.shared import INITIAL_DEVIATION, NORM_EPSILON, SPEC

# The model


class Block(nn.Module):
    def __init__(self, opt):
        super().__init__()
        width, hidden = opt.shape.width, opt.shape.hidden
        self.heads = opt.shape.heads
        self.norm1, self.norm2 = (nn.LayerNorm(width, eps=NORM_EPSILON) for _ in range(2))
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, hidden), nn.Linear(hidden, width)

    def forward(self, x, mask):
        query, key, value = transformer.split_heads(self.qkv(self.norm1(x)), self.heads)
        attended = transformer.attention(query, key, value, mask)
        x = x + self.out(transformer.join_heads(attended))
        return x + self.down(transformer.tanh_gelu(self.up(self.norm2(x))))


class GPT2(nn.Module):
    """From tokens to the hidden states that the head takes."""

    def __init__(self, opt):
        super().__init__()
        shape = opt.shape
        self.token_embedding = nn.Embedding(shape.vocabulary, shape.width)
        self.position_embedding = nn.Embedding(shape.positions, shape.width)
        self.blocks = nn.ModuleList([Block(opt) for _ in range(shape.layers)])
        self.norm = nn.LayerNorm(shape.width, eps=NORM_EPSILON)
        self.mask = transformer.causal_mask(opt)
        # What enters the residual stream starts smaller.
        residual = INITIAL_DEVIATION / math.sqrt(2 * shape.layers)
        transformer.draw(self, INITIAL_DEVIATION, ("out", "down"), residual)

    def forward(self, tokens):
        places = flow.arange(tokens.shape[1], device=tokens.device)
        x = self.token_embedding(tokens) + self.position_embedding(places)
        for block in self.blocks:
            x = block(x, self.mask)
        return self.norm(x)

    def head(self):
        return self.token_embedding.weight


def build(opt):
    return transformer.Decoder(GPT2(opt))


if __name__ == "__main__":
    SPEC.main(transformer, build)
