"""Random token ids on the host, alike for every framework: numpy, Python 3.7+."""

import numpy as np

BATCHES = 4  # that a host loader hands out in turn


def decoder_batches(opt, count):
    """Return batches of tokens and the targets that follow them; other ones on each rank."""
    random = np.random.default_rng([opt.seed, opt.rank])
    shape = opt.step_sequences, opt.length + 1
    drawn = (random.integers(0, opt.shape.vocabulary, shape, np.int32) for _ in range(count))
    return [(np.ascontiguousarray(ids[:, :-1]), np.ascontiguousarray(ids[:, 1:])) for ids in drawn]
