"""Training BERT in MXNet (Gluon): the model, and main; data and step are those of all transformers."""

import functools

import mxnet as mx
from mxnet.gluon import nn

from trainmark.workloads.bert.shared import INITIAL_DEVIATION, NORM_EPSILON, SEGMENTS, SPEC
from trainmark.workloads.transformers.frameworks import mxnet as transformer

# The model. Gluon passes the array or the symbol namespace as F.


class Block(nn.HybridBlock):
    """Post-norm: each half is normed after its sum."""

    def __init__(self, opt):
        super().__init__()
        width, hidden, heads = opt.shape.width, opt.shape.hidden, opt.shape.heads
        self.qkv, self.out = linear(width, 3 * width), linear(width, width)
        self.up, self.down = linear(width, hidden), linear(hidden, width)
        self.norm1, self.norm2, self.gelu = layer_norm(width), layer_norm(width), nn.GELU()
        self.attention = functools.partial(transformer.attention(opt), heads=heads)

    def hybrid_forward(self, F, x, lengths):  # noqa: N803
        x = self.norm1(x + self.out(self.attention(F, self.qkv(x), lengths)))
        return self.norm2(x + self.down(self.gelu(self.up(x))))


class Bert(nn.HybridBlock):
    """From tokens to the logits of masked tokens, or of all, and to those of the next sentence."""

    def __init__(self, opt):
        super().__init__()
        shape = opt.shape
        width = shape.width
        self.length, self.heads, self.padded = opt.length, shape.heads, opt.padded
        self.token_embedding = embedding(shape.vocabulary, width)
        self.position_embedding = embedding(shape.positions, width)
        self.segment_embedding = embedding(SEGMENTS, width)
        self.embedding_norm = layer_norm(width)
        self.blocks = nn.HybridSequential()
        self.blocks.add(*(Block(opt) for _ in range(shape.layers)))
        self.pooler, self.next_sentence = linear(width, width), linear(width, 2)
        self.transform, self.gelu, self.transform_norm = linear(width, width), nn.GELU(), layer_norm(width)
        self.head = transformer.tied_head(self.token_embedding, use_bias=True)

    def hybrid_forward(self, F, tokens, segments, lengths, positions):  # noqa: N803
        """Return logits at the `positions` of each sequence; at all without them."""
        x = self.token_embedding(F.transpose(tokens)) + self.segment_embedding(F.transpose(segments))
        places = F.expand_dims(self.position_embedding(F.arange(self.length)), 1)
        x = self.embedding_norm(F.broadcast_add(x, places))
        seen = self.lengths_of_rows(F, lengths, tokens) if self.padded else None
        for block in self.blocks:
            x = block(x, seen)
        sentence = self.next_sentence(F.tanh(self.pooler(F.slice_axis(x, axis=0, begin=0, end=1))))
        x = F.transpose(x, (1, 0, 2)) if positions is None else at_positions(F, x, positions)
        return self.head(self.transform_norm(self.gelu(self.transform(x)))), F.squeeze(sentence, axis=0)

    def lengths_of_rows(self, F, lengths, tokens):  # noqa: N803
        """Return how many keys each query sees, alike in all heads; at least one."""
        by_query = F.broadcast_like(F.expand_dims(F.maximum(lengths, 1), 1), tokens)
        return F.repeat(by_query, self.heads, axis=0)


class Pretraining(nn.HybridBlock):
    """The network with both heads: the sums of a micro-batch's losses."""

    def __init__(self, opt, network):
        super().__init__()
        self.network, self.length, self.all_tokens = network, opt.length, opt.predictions == "all"

    def hybrid_forward(self, F, tokens, segments, lengths, positions, labels, next_sentence):  # noqa: N803
        if self.all_tokens:
            positions, labels = None, labels_of_all(F, self.length, positions, labels)
        logits, sentence = self.network(tokens, segments, lengths, positions)
        return transformer.loss_sum(F, logits, labels), transformer.loss_sum(F, sentence, next_sentence)

    def loss(self, *batch_and_normalizers):
        *batch, masked, sequences = batch_and_normalizers
        masked_loss, sentence_loss = self(*batch)
        return masked_loss / masked + sentence_loss / sequences

    @staticmethod
    def normalizers(tokens, segments, lengths, positions, labels, next_sentence):
        """Return by what a step's losses are divided: masked tokens, and sequences with a next sentence."""
        return tuple(max(1, int(count(part >= 0).asscalar())) for part in (labels, next_sentence))

    def evaluate(self, tokens, segments, lengths, positions, labels, next_sentence):
        logits, sentence = self.network(tokens, segments, lengths, positions)
        counts = (
            transformer.loss_sum(mx.nd, logits, labels),
            count(labels >= 0),
            count(mx.nd.argmax(logits, axis=-1) == labels.astype("float32")),
            count(mx.nd.argmax(sentence, axis=-1) == next_sentence.astype("float32")),
            count(next_sentence >= 0),
        )
        return mx.nd.concat(*counts, dim=0).asnumpy


def linear(inputs, outputs):
    return transformer.linear(inputs, outputs, INITIAL_DEVIATION)


def embedding(count, width):
    return transformer.embedding(count, width, INITIAL_DEVIATION)


def layer_norm(width):
    return nn.LayerNorm(epsilon=NORM_EPSILON, in_channels=width)


def at_positions(F, x, positions):  # noqa: N803
    """Return the tokens (sequences, predictions, width) of hidden states (length, sequences, width)."""
    positions = F.cast(positions, "float32")
    sequences = F.broadcast_like(F.expand_dims(F.contrib.arange_like(positions, axis=0), 1), positions)
    return F.gather_nd(x, F.stack(positions, sequences))


def labels_of_all(F, length, positions, labels):  # noqa: N803
    """Return a label for each token, -1 for those that are not masked; so are positions that fill up."""
    places = F.one_hot(positions, length)
    return F.max(F.broadcast_mul(places, F.expand_dims(F.cast(labels, "float32") + 1, 2)), axis=1) - 1


def count(correct):
    return correct.astype("float32").sum()


def build(opt):
    return Pretraining(opt, Bert(opt))


if __name__ == "__main__":
    SPEC.main(transformer, build)
