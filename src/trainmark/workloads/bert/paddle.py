"""Training BERT in Paddle: the model, and main; data and step are those of all transformers."""

import functools

from trainmark.workloads.transformers.frameworks import paddle as transformer  # before Paddle's own import

# isort: split
import paddle
from paddle import nn
from paddle.nn import functional

from trainmark.workloads.bert.shared import INITIAL_DEVIATION, NORM_EPSILON, SEGMENTS, SPEC

# The model

linear = functools.partial(transformer.linear, deviation=INITIAL_DEVIATION)
embedding = functools.partial(transformer.embedding, deviation=INITIAL_DEVIATION)
norm = functools.partial(nn.LayerNorm, epsilon=NORM_EPSILON)


class Block(nn.Layer):
    """Post-norm: each half is normed after its sum."""

    def __init__(self, opt):
        super().__init__()
        width, hidden = opt.shape.width, opt.shape.hidden
        self.heads = opt.shape.heads
        self.qkv, self.out = linear(width, 3 * width), linear(width, width)
        self.up, self.down = linear(width, hidden), linear(hidden, width)
        self.norm1, self.norm2 = norm(width), norm(width)
        self.attention = functools.partial(transformer.attention(opt), causal=False)

    def forward(self, x, mask):
        batch, length, width = x.shape
        parts = self.qkv(x).reshape([batch, length, 3, self.heads, width // self.heads])
        query, key, value = parts.unbind(2)
        attended = self.attention(query, key, value, mask=mask).reshape([batch, length, width])
        x = self.norm1(x + self.out(attended))
        return self.norm2(x + self.down(functional.gelu(self.up(x))))


class Bias(nn.Layer):
    def __init__(self, width):
        super().__init__()
        self.bias = self.create_parameter([width], is_bias=True)


class Bert(nn.Layer):
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
        self.blocks = nn.LayerList([Block(opt) for _ in range(shape.layers)])
        self.pooler, self.next_sentence = linear(width, width), linear(width, 2)
        self.transform, self.transform_norm = linear(width, width), norm(width)
        self.head = Bias(shape.vocabulary)  # on top of the token embedding's matrix
        self.run_block = transformer.block_runner(opt)

    def forward(self, tokens, segments, lengths, positions):
        """Return hidden states at the `positions` of each sequence; at all where they are None."""
        places = paddle.arange(tokens.shape[1], dtype="int32")
        x = self.token_embedding(tokens) + self.position_embedding(places) + self.segment_embedding(segments)
        x = self.embedding_norm(x)
        mask = None
        if self.padded:
            mask = (places < lengths.clip(min=1).unsqueeze(1)).unsqueeze([1, 2])
        for block in self.blocks:
            x = self.run_block(block, x, mask)
        sentence = self.next_sentence(self.pooler(x[:, 0]).tanh())
        if positions is not None:
            x = paddle.take_along_axis(x, positions.astype("int64").unsqueeze(2), 1)
        return self.transform_norm(functional.gelu(self.transform(x))), sentence

    def logits(self, hidden):
        """Return those of the MLM head, in float32."""
        product = paddle.matmul(hidden, self.token_embedding.weight, transpose_y=True)
        return (product + self.head.bias).astype("float32")


class Pretraining(nn.Layer):
    """The network with the losses of both heads: `forward` returns a micro-batch's share of the loss."""

    def __init__(self, opt, network):
        super().__init__()
        self.network, self.all_tokens = network, opt.predictions == "all"

    def forward(self, tokens, segments, lengths, positions, labels, next_sentence, masked, sequences):
        if self.all_tokens:
            positions, labels = None, labels_of_all(tokens, positions, labels)
        hidden, sentence = self.network(tokens, segments, lengths, positions)
        loss = transformer.entropy_sum(self.network.logits(hidden), labels) / masked
        return loss + transformer.entropy_sum(sentence.astype("float32"), next_sentence) / sequences

    @staticmethod
    def normalizers(tokens, segments, lengths, positions, labels, next_sentence):
        """Return by what a step's losses are divided: masked tokens, and sequences with a next sentence."""
        parts = labels, next_sentence
        return tuple((part >= 0).astype("float32").sum().clip(min=1.0) for part in parts)

    def evaluate(self, tokens, segments, lengths, positions, labels, next_sentence):
        hidden, sentence = self.network(tokens, segments, lengths, positions)
        logits = self.network.logits(hidden)
        numbers = (
            transformer.entropy_sum(logits, labels),
            (labels >= 0).sum(),
            (logits.argmax(-1, dtype="int32") == labels).sum(),
            (sentence.argmax(-1, dtype="int32") == next_sentence).sum(),
            (next_sentence >= 0).sum(),
        )
        return paddle.stack([number.astype("float64") for number in numbers])


def labels_of_all(tokens, positions, labels):
    """Return a label for each token, -1 for those that are not masked; so are positions that fill up."""
    nothing = paddle.full_like(tokens, -1)
    return nothing.put_along_axis(positions.astype("int64"), labels, 1, reduce="amax")


def build(opt):
    return Pretraining(opt, Bert(opt))


if __name__ == "__main__":
    SPEC.main(transformer, build)
