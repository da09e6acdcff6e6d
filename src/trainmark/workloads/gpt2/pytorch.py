"""Training GPT-2 in PyTorch: the model, and main; data and step are those of all transformers."""

import functools
import math

import torch
from torch import nn
from torch.nn import functional

from trainmark.workloads.gpt2.shared import INITIAL_DEVIATION, NORM_EPSILON, SPEC
from trainmark.workloads.transformers.frameworks import pytorch as transformer

# The model


class Block(nn.Module):
    def __init__(self, opt):
        super().__init__()
        width, hidden = opt.shape.width, opt.shape.hidden
        self.heads = opt.shape.heads
        self.norm1, self.norm2 = (nn.LayerNorm(width, eps=NORM_EPSILON) for _ in range(2))
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, hidden), nn.Linear(hidden, width)
        self.attention = functools.partial(transformer.attention(opt), causal=True)

    def forward(self, x):
        parts = self.qkv(self.norm1(x)).chunk(3, -1)
        query, key, value = (part.unflatten(-1, (self.heads, -1)).transpose(1, 2) for part in parts)
        x = x + self.out(self.attention(query, key, value).transpose(1, 2).flatten(2))
        return x + self.down(functional.gelu(self.up(self.norm2(x)), approximate="tanh"))


class GPT2(nn.Module):
    """From tokens to the hidden states that the head takes."""

    def __init__(self, opt):
        super().__init__()
        shape = opt.shape
        self.token_embedding = nn.Embedding(shape.vocabulary, shape.width)
        self.position_embedding = nn.Embedding(shape.positions, shape.width)
        self.blocks = nn.ModuleList(Block(opt) for _ in range(shape.layers))
        self.norm = nn.LayerNorm(shape.width, eps=NORM_EPSILON)
        self.run_block = transformer.block_runner(opt)

    def initialize(self):
        """Draw the initial weights as the paper does: what enters the residual stream is made smaller."""
        residual = INITIAL_DEVIATION / math.sqrt(2 * len(self.blocks))
        for name, module in self.named_modules():
            if isinstance(module, (nn.Linear, nn.Embedding)):
                small = name.endswith(("out", "down"))
                nn.init.normal_(module.weight, std=residual if small else INITIAL_DEVIATION)
            if isinstance(module, nn.Linear):
                nn.init.zeros_(module.bias)

    def forward(self, tokens):
        places = torch.arange(tokens.shape[1], device=tokens.device)
        x = self.token_embedding(tokens) + self.position_embedding(places)
        for block in self.blocks:
            x = self.run_block(block, x)
        return self.norm(x)

    @property
    def head_weight(self):
        return self.token_embedding.weight


def build(opt):
    return transformer.Decoder(opt, GPT2(opt))


if __name__ == "__main__":
    SPEC.main(transformer, build)
