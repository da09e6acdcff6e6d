"""Training BERT in MindSpore: the model, and main; data and step are those of all transformers."""

import functools

from trainmark.workloads.transformers.frameworks import mindspore as transformer  # before its own import

# isort: split
import mindspore as ms
import numpy as np
from mindspore import nn, ops

from trainmark.workloads.bert.shared import INITIAL_DEVIATION, NORM_EPSILON, SEGMENTS, SPEC

# The model

linear = functools.partial(transformer.linear, deviation=INITIAL_DEVIATION)
embedding = functools.partial(transformer.embedding, deviation=INITIAL_DEVIATION)
norm = functools.partial(transformer.norm, epsilon=NORM_EPSILON)


class Block(nn.Cell):
    """Post-norm: each half is normed after its sum."""

    def __init__(self, opt):
        super().__init__()
        width, hidden = opt.shape.width, opt.shape.hidden
        self.qkv, self.out = linear(width, 3 * width), linear(width, width)
        self.attention = transformer.Attention(opt)
        self.norm1, self.norm2 = norm(width), norm(width)
        self.up, self.down = linear(width, hidden), linear(hidden, width)

    def construct(self, x, mask):
        x = self.norm1(x + self.out(self.attention(self.qkv(x), mask)))
        return self.norm2(x + self.down(ops.gelu(self.up(x))))


class Bias(nn.Cell):
    def __init__(self, width):
        super().__init__()
        self.bias = ms.Parameter(ms.Tensor(np.zeros(width), ms.float32), name="bias")


class Bert(nn.Cell):
    """From tokens to the hidden states that the MLM head takes, and to the logits of the next sentence."""

    def __init__(self, opt):
        super().__init__()
        shape = opt.shape
        width = shape.width
        self.padded = opt.padded
        self.token_embedding = embedding(shape.vocabulary, width)
        self.position_embedding = embedding(shape.positions, width)
        self.segment_embedding = embedding(SEGMENTS, width)
        self.embedding_norm = norm(width)
        self.blocks = transformer.make_blocks(opt, [Block(opt) for _ in range(shape.layers)])
        self.pooler, self.next_sentence = linear(width, width), linear(width, 2)
        self.transform, self.transform_norm = linear(width, width), norm(width)
        self.head = Bias(shape.vocabulary)  # on top of the token embedding's matrix
        self.product = transformer.HeadLogits(opt)
        self.places = ms.Tensor(np.arange(opt.length), ms.int32)

    def construct(self, tokens, segments, lengths):
        """Return the hidden states of all tokens."""
        x = self.token_embedding(tokens) + self.position_embedding(self.places)
        x = self.embedding_norm(x + self.segment_embedding(segments))
        mask = None
        if self.padded:
            seen = self.places < ops.maximum(lengths, 1).expand_dims(1)
            mask = seen.reshape((seen.shape[0], 1, 1, seen.shape[1]))
        for block in self.blocks:
            x = block(x, mask)
        return x

    def sentence_logits(self, x):
        return self.next_sentence(tanh(self.pooler(x[:, 0]))).astype(ms.float32)

    def logits(self, x):
        """Return those of the MLM head in float32, a row for each token."""
        hidden = self.transform_norm(ops.gelu(self.transform(x)))
        return self.product(hidden, self.token_embedding.embedding_table) + self.head.bias


class Pretraining(nn.Cell):
    """The network with the losses of both heads: `construct` returns a micro-batch's share of the loss."""

    def __init__(self, opt, network):
        super().__init__()
        self.network, self.all_tokens = network, opt.predictions == "all"

    def construct(self, tokens, segments, lengths, positions, labels, next_sentence, masked, sequences):
        x = self.network(tokens, segments, lengths)
        sentence = transformer.entropy_sum(self.network.sentence_logits(x), next_sentence)
        if self.all_tokens:
            labels = labels_of_all(tokens, positions, labels)
        else:
            x = at_positions(x, positions)
        return transformer.entropy_sum(self.network.logits(x), labels) / masked + sentence / sequences

    def normalizers(self, tokens, segments, lengths, positions, labels, next_sentence):
        """Return by what a step's losses are divided: masked tokens, and sequences with a next sentence."""
        counted = ((part >= 0).astype(ms.float32).sum() for part in (labels, next_sentence))
        return tuple(ops.maximum(number, 1.0) for number in counted)

    def evaluate(self, tokens, segments, lengths, positions, labels, next_sentence):
        x = self.network(tokens, segments, lengths)
        sentence = self.network.sentence_logits(x)
        logits = self.network.logits(at_positions(x, positions))
        return transformer.counts(
            transformer.entropy_sum(logits, labels),
            (labels >= 0).sum(),
            (logits.argmax(-1).astype(ms.int32) == labels.reshape((-1,))).sum(),
            (sentence.argmax(-1).astype(ms.int32) == next_sentence).sum(),
            (next_sentence >= 0).sum(),
        )


def tanh(x):
    """Return the hyperbolic tangent by the sigmoid: MindSpore's own is off by up to 1e-4 on CPUs."""
    return 2.0 * ops.sigmoid(2.0 * x) - 1.0


def at_positions(x, positions):
    """Return the hidden states at the positions of each sequence."""
    return ops.gather_elements(x, 1, ops.tile(positions.expand_dims(2), (1, 1, x.shape[2])))


def labels_of_all(tokens, positions, labels):
    """Return a label for each token, -1 for those that are not masked; so are positions that fill up."""
    # As sums, which MindSpore has on CPUs: no token is masked twice, and without a label nothing is added.
    added = ops.where(labels >= 0, labels + 1, ops.zeros_like(labels))
    return ops.tensor_scatter_elements(ops.zeros_like(tokens), positions, added, 1, "add") - 1


def build(opt):
    return Pretraining(opt, Bert(opt))


if __name__ == "__main__":
    SPEC.main(transformer, build)
