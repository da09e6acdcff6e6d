"""Training GPT-2 in TensorFlow: the model, and main; data and step are those of all transformers."""

import math

from trainmark.workloads.gpt2.shared import INITIAL_DEVIATION, NORM_EPSILON, SPEC
from trainmark.workloads.transformers.frameworks import tensorflow as transformer
from trainmark.workloads.transformers.frameworks.tensorflow import Embedding, LayerNorm, Linear

tf = transformer.tf

# The model


class Block(tf.Module):
    def __init__(self, shape):
        super().__init__()
        width, hidden, self.heads = shape.width, shape.hidden, shape.heads
        residual = INITIAL_DEVIATION / math.sqrt(2 * shape.layers)  # of what enters the residual stream
        self.norm1, self.norm2 = LayerNorm(width, NORM_EPSILON), LayerNorm(width, NORM_EPSILON)
        self.qkv = Linear(width, 3 * width, INITIAL_DEVIATION)
        self.out = Linear(width, width, residual)
        self.up = Linear(width, hidden, INITIAL_DEVIATION)
        self.down = Linear(hidden, width, residual)

    def __call__(self, x, mask):
        parts = tf.split(self.qkv(self.norm1(x)), 3, axis=-1)
        query, key, value = (transformer.split_heads(part, self.heads) for part in parts)
        x += self.out(transformer.merge_heads(transformer.attention(query, key, value, mask)))
        return x + self.down(tf.nn.gelu(self.up(self.norm2(x)), approximate=True))


class GPT2(tf.Module):
    """From tokens to the hidden states that the head takes."""

    def __init__(self, opt):
        super().__init__()
        shape = opt.shape
        self.token_embedding = Embedding(shape.vocabulary, shape.width, INITIAL_DEVIATION)
        self.position_embedding = Embedding(shape.positions, shape.width, INITIAL_DEVIATION)
        self.blocks = [Block(shape) for _ in range(shape.layers)]
        self.norm = LayerNorm(shape.width, NORM_EPSILON)
        self.run_block = transformer.block_runner(opt)
        self.compute_type = transformer.compute_type(opt)

    def __call__(self, tokens):
        length = tokens.shape[1]
        x = self.token_embedding(tokens) + self.position_embedding.weight[:length]
        x, mask = tf.cast(x, self.compute_type), transformer.causal_mask(length)
        for block in self.blocks:
            x = self.run_block(block, x, mask)
        return self.norm(x)

    @property
    def head_weight(self):
        return self.token_embedding.weight


def build(opt):
    return transformer.Decoder(GPT2(opt))


if __name__ == "__main__":
    SPEC.main(transformer, build)
