"""Training a Llama in PyTorch: the model, and main; data and step are those of all transformers."""

import functools

import torch
from torch import nn
from torch.nn import functional

from trainmark.workloads.llama.shared import INITIAL_DEVIATION, NORM_EPSILON, ROTARY_BASE, SPEC
from trainmark.workloads.transformers.frameworks import pytorch as transformer

# The model


class Block(nn.Module):
    def __init__(self, opt):
        super().__init__()
        shape = opt.shape
        width, grouped = shape.width, shape.key_value_width
        self.head_width = shape.head_width
        self.norm1, self.norm2 = (nn.RMSNorm(width, eps=NORM_EPSILON) for _ in range(2))
        self.query, self.out = linear(width, width), linear(width, width)
        self.key, self.value = linear(width, grouped), linear(width, grouped)
        self.gate, self.up = linear(width, shape.hidden), linear(width, shape.hidden)
        self.down = linear(shape.hidden, width)
        self.attention = functools.partial(transformer.attention(opt), causal=True)

    def forward(self, x, cosine, sine):
        y = self.norm1(x)
        query, key, value = (
            layer(y).unflatten(-1, (-1, self.head_width)).transpose(1, 2)
            for layer in (self.query, self.key, self.value)
        )
        query, key = rotate(query, cosine, sine), rotate(key, cosine, sine)
        x = x + self.out(self.attention(query, key, value).transpose(1, 2).flatten(2))
        y = self.norm2(x)
        return x + self.down(functional.silu(self.gate(y)) * self.up(y))


def linear(inputs, outputs):
    return nn.Linear(inputs, outputs, bias=False)


def rotate(x, cosine, sine):
    """Apply rotary positions (Su et al. 2021): element i of a head is paired with i + half its width."""
    first, second = x.float().chunk(2, -1)
    return torch.cat((first * cosine - second * sine, second * cosine + first * sine), -1).to(x.dtype)


def rotary_table(length, head_width):
    """Return cosine and sine of every position's angles, in float32."""
    exponents = torch.arange(0, head_width, 2, dtype=torch.float64) / head_width
    places = torch.arange(length, dtype=torch.float64)
    angles = places[:, None] * ROTARY_BASE**-exponents
    return angles.cos().float(), angles.sin().float()


class Llama(nn.Module):
    """From tokens to the hidden states that the head takes."""

    def __init__(self, opt):
        super().__init__()
        shape = opt.shape
        self.token_embedding = nn.Embedding(shape.vocabulary, shape.width)
        self.blocks = nn.ModuleList(Block(opt) for _ in range(shape.layers))
        self.norm = nn.RMSNorm(shape.width, eps=NORM_EPSILON)
        self.head = linear(shape.width, shape.vocabulary)
        self.run_block = transformer.block_runner(opt)
        # No buffers: those would become bfloat16 with the weights.
        self.cosine, self.sine = rotary_table(opt.length, shape.head_width)

    def initialize(self):
        for module in self.modules():
            if isinstance(module, (nn.Linear, nn.Embedding)):
                nn.init.normal_(module.weight, std=INITIAL_DEVIATION)

    def forward(self, tokens):
        x = self.token_embedding(tokens)
        for block in self.blocks:
            x = self.run_block(block, x, self.cosine, self.sine)
        return self.norm(x)

    @property
    def head_weight(self):
        return self.head.weight


def build(opt):
    return transformer.Decoder(opt, Llama(opt))


if __name__ == "__main__":
    SPEC.main(transformer, build)
