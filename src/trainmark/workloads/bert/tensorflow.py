"""Training BERT in TensorFlow: the model, and main; data and step are those of all transformers."""

from trainmark.workloads.bert.shared import INITIAL_DEVIATION, NORM_EPSILON, SEGMENTS, SPEC
from trainmark.workloads.transformers.frameworks import tensorflow as transformer
from trainmark.workloads.transformers.frameworks.tensorflow import Embedding, LayerNorm, Linear

tf = transformer.tf

# The model


class Block(tf.Module):
    """Post-norm: each half is normed after its sum."""

    def __init__(self, shape):
        super().__init__()
        width, hidden, self.heads = shape.width, shape.hidden, shape.heads
        self.qkv, self.out = linear(width, 3 * width), linear(width, width)
        self.up, self.down = linear(width, hidden), linear(hidden, width)
        self.norm1, self.norm2 = LayerNorm(width, NORM_EPSILON), LayerNorm(width, NORM_EPSILON)

    def __call__(self, x, *mask):
        parts = tf.split(self.qkv(x), 3, axis=-1)
        query, key, value = (transformer.split_heads(part, self.heads) for part in parts)
        attended = transformer.merge_heads(transformer.attention(query, key, value, *mask))
        x = self.norm1(x + self.out(attended))
        return self.norm2(x + self.down(tf.nn.gelu(self.up(x))))


class Bias(tf.Module):
    def __init__(self, width):
        super().__init__()
        self.bias = tf.Variable(tf.zeros(width))


class Bert(tf.Module):
    """From tokens to the hidden states that the MLM head takes, and to the logits of the next sentence."""

    def __init__(self, opt):
        super().__init__()
        shape = opt.shape
        width = shape.width
        self.padded, self.compute_type = opt.padded, transformer.compute_type(opt)
        self.token_embedding = Embedding(shape.vocabulary, width, INITIAL_DEVIATION)
        self.position_embedding = Embedding(shape.positions, width, INITIAL_DEVIATION)
        self.segment_embedding = Embedding(SEGMENTS, width, INITIAL_DEVIATION)
        self.embedding_norm = LayerNorm(width, NORM_EPSILON)
        self.blocks = [Block(shape) for _ in range(shape.layers)]
        self.pooler, self.next_sentence = linear(width, width), linear(width, 2)
        self.transform, self.transform_norm = linear(width, width), LayerNorm(width, NORM_EPSILON)
        self.head = Bias(shape.vocabulary)  # on top of the token embedding's matrix
        self.run_block = transformer.block_runner(opt)

    def __call__(self, tokens, segments, lengths, positions=None):
        """Return hidden states at the `positions` of each sequence; at all without them."""
        length = tokens.shape[1]
        x = self.token_embedding(tokens) + self.position_embedding.weight[:length]
        x = tf.cast(self.embedding_norm(x + self.segment_embedding(segments)), self.compute_type)
        mask = [transformer.padding_mask(lengths, length)] if self.padded else []
        for block in self.blocks:
            x = self.run_block(block, x, *mask)
        sentence = self.next_sentence(tf.tanh(self.pooler(x[:, 0])))
        if positions is not None:
            x = tf.gather(x, positions, batch_dims=1)
        return self.transform_norm(tf.nn.gelu(self.transform(x))), tf.cast(sentence, tf.float32)

    def logits(self, hidden):
        return tf.nn.bias_add(transformer.tied_logits(hidden, self.token_embedding.weight), self.head.bias)


class Pretraining(tf.Module):
    """The network with the losses of both heads; `loss` returns a micro-batch's share of the loss."""

    def __init__(self, opt, network):
        super().__init__()
        self.network, self.all_tokens = network, opt.predictions == "all"

    def loss(self, tokens, segments, lengths, positions, labels, next_sentence, masked, sequences):
        if self.all_tokens:
            positions, labels = None, labels_of_all(tokens.shape[1], positions, labels)
        hidden, sentence = self.network(tokens, segments, lengths, positions)
        masked_loss = transformer.loss_sum(self.network.logits(hidden), labels)
        return masked_loss / masked + transformer.loss_sum(sentence, next_sentence) / sequences

    @staticmethod
    def normalizers(tokens, segments, lengths, positions, labels, next_sentence):
        """Return by what a step's losses are divided: masked tokens, and sequences with a next sentence."""
        return tuple(tf.maximum(count(part >= 0, tf.float32), 1.0) for part in (labels, next_sentence))

    def evaluate(self, tokens, segments, lengths, positions, labels, next_sentence):
        hidden, sentence = self.network(tokens, segments, lengths, positions)
        logits, labels = self.network.logits(hidden), tf.reshape(labels, (-1,))
        counts = (
            tf.cast(transformer.loss_sum(logits, labels), tf.float64),
            count(labels >= 0),
            count(tf.argmax(logits, -1) == labels),
            count(tf.argmax(sentence, -1) == next_sentence),
            count(next_sentence >= 0),
        )
        return tf.stack(counts)


def linear(inputs, outputs):
    return Linear(inputs, outputs, INITIAL_DEVIATION)


def labels_of_all(length, positions, labels):
    """Return a label for each token, -1 for those that are not masked; so are positions that fill up."""
    places = tf.one_hot(positions, length, dtype=labels.dtype)
    return tf.reduce_max(places * (labels + 1)[:, :, None], axis=1) - 1


def count(correct, dtype=tf.float64):
    return tf.math.count_nonzero(correct, dtype=dtype)


def build(opt):
    return Pretraining(opt, Bert(opt))


if __name__ == "__main__":
    SPEC.main(transformer, build)
