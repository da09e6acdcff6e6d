"""Random sequences on the host, alike for every framework: numpy, Python 3.7+."""

import numpy as np

from trainmark.workloads.bert.shared.model import SEGMENTS


def bert_batches(opt, count):
    """Return batches of (tokens, segments, lengths, positions, labels, next_sentence); other ones by rank.

    All sequences have their full length, so that no framework can skip any of it.
    """
    random = np.random.default_rng([opt.seed, opt.rank])
    return [_batch(random, opt) for _ in range(count)]


def _batch(random, opt):
    sequences, length = opt.step_sequences, opt.length
    tokens = random.integers(0, opt.shape.vocabulary, (sequences, length), np.int32)
    halves = (np.arange(length) * SEGMENTS // length).astype(np.int32)
    segments = np.ascontiguousarray(np.broadcast_to(halves, tokens.shape))
    lengths = np.full(sequences, length, np.int32)
    # The first token stands for the sequence and is not masked.
    drawn = 1 + random.permuted(np.tile(np.arange(length - 1, dtype=np.int32), (sequences, 1)), axis=1)
    positions = np.sort(drawn[:, : opt.masked], axis=1)
    labels = random.integers(0, opt.shape.vocabulary, positions.shape, np.int32)
    next_sentence = random.integers(0, 2, sequences, np.int32)
    return tokens, segments, lengths, positions, labels, next_sentence
