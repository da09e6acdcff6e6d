"""What a transformer's training is in every framework: its synthetic data, and the facts of its start."""

import numpy as np


def canonical_parameters(network):
    """Return the parameters of a module by their canonical names: a norm's weight is its scale."""
    named = network.named_parameters()
    return {
        name.replace(".weight", ".scale") if "norm" in name else name: parameter for name, parameter in named
    }


class TransformerTraining:
    """Beside the verbs of a framework's training, which adds `features()`: what is on in its model."""

    def host_batches(self, count):
        return batches(self.opt, count)

    def start_facts(self):
        asked = {"sharding": self.opt.sharding, "recompute": self.opt.recompute}
        return {"features": dict(self.features(), **asked)}


def batches(opt, count):
    """Return what a step of this model takes, so many times; other ones on each rank."""
    return (decoder_batches if opt.shape.causal else bert_batches)(opt, count)


def decoder_batches(opt, count):
    """Return batches of tokens and the targets that follow them."""
    random = np.random.default_rng([opt.seed, opt.rank])
    shape = opt.step_sequences, opt.length + 1
    drawn = (random.integers(0, opt.shape.vocabulary, shape, np.int32) for _ in range(count))
    return [(np.ascontiguousarray(ids[:, :-1]), np.ascontiguousarray(ids[:, 1:])) for ids in drawn]


def bert_batches(opt, count):
    """Return batches of (tokens, segments, lengths, positions, labels, next_sentence).

    All sequences have their full length, so that no framework can skip any of it.
    """
    random = np.random.default_rng([opt.seed, opt.rank])
    return [_batch(random, opt) for _ in range(count)]


def _batch(random, opt):
    sequences, length = opt.step_sequences, opt.length
    tokens = random.integers(0, opt.shape.vocabulary, (sequences, length), np.int32)
    halves = (np.arange(length) * 2 // length).astype(np.int32)
    segments = np.ascontiguousarray(np.broadcast_to(halves, tokens.shape))
    lengths = np.full(sequences, length, np.int32)
    # The first token stands for the sequence and is not masked.
    drawn = 1 + random.permuted(np.tile(np.arange(length - 1, dtype=np.int32), (sequences, 1)), axis=1)
    positions = np.sort(drawn[:, : opt.masked], axis=1)
    labels = random.integers(0, opt.shape.vocabulary, positions.shape, np.int32)
    next_sentence = random.integers(0, 2, sequences, np.int32)
    return tokens, segments, lengths, positions, labels, next_sentence
