"""Which sequences make which step: the same for every framework, whatever the number of ranks.

A corpus is cut into windows of `length` tokens, one behind the other, each with one token more for the
targets. Training is one long list of windows: a permutation of all of them, then another, and so on. A step
takes the next global batch of that list, each rank a consecutive part of it. Every place follows from its
number alone, so that a training goes on at any step.
"""

import numpy as np

from trainmark.workloads.common import chance

ROUNDS = 6  # of the Feistel network; four already pass for random (Luby, Rackoff 1988)
BLOCK = 4096  # places that are computed together


def windows(tokens, length):
    """How many windows a corpus has; the last targets need one token more."""
    return max(0, (tokens - 1) // length)


def permuted(places, size, key):
    """Return a permutation of range(size) at these places, without making all of it.

    A Feistel network permutes the next power of four; what falls outside of `size` goes through it again
    (cycle-walking, Black and Rogaway 2002).
    """
    half = np.uint64(max(1, (max(1, size - 1).bit_length() + 1) // 2))
    values = np.array(places, np.uint64)
    outside = np.ones(len(values), bool)
    while outside.any():
        values[outside] = _feistel(values[outside], half, key)
        outside = values >= np.uint64(size)
    return values.astype(np.int64)


def _feistel(values, half, key):
    mask = (np.uint64(1) << half) - np.uint64(1)
    left, right = values >> half, values & mask
    for number in range(ROUNDS):
        left, right = right, left ^ (chance.bits(chance.key(key, number), right) & mask)
    return (left << half) | right


class Order:
    """The list of windows that a training goes through: pass after pass over the corpus."""

    def __init__(self, size, seed):
        self.size, self.seed = size, seed
        self._recent = {}

    def windows(self, begin, end):
        """Return the windows at these places of the list."""
        parts = []
        while begin < end:
            number, place = divmod(begin, self.size)
            block, offset = divmod(place, BLOCK)
            part = self._block(number, block)[offset : offset + end - begin]
            parts.append(part)
            begin += len(part)
        return np.concatenate(parts) if parts else np.empty(0, np.int64)

    def _block(self, number, block):
        """Return one block of a pass; the last two are remembered."""
        if (number, block) not in self._recent:
            while len(self._recent) > 1:
                del self._recent[min(self._recent)]
            places = np.arange(block * BLOCK, min((block + 1) * BLOCK, self.size))
            self._recent[number, block] = permuted(places, self.size, chance.key(self.seed, number))
        return self._recent[number, block]


def steps_per_epoch(size, length, global_batch, epoch_tokens=None):
    """How many steps an epoch has: so many tokens, or as many full batches as a smaller corpus has."""
    windows_of_epoch = size if epoch_tokens is None else min(size, epoch_tokens // length)
    return max(1, windows_of_epoch // global_batch)


def share(step, sequences, rank, world_size):
    """Return the places (first, one behind the last) of a rank in a step, steps counted over all epochs."""
    begin = (step * world_size + rank) * sequences
    return begin, begin + sequences


def evaluation_shares(size, batch, rank, world_size):
    """Yield the windows of each evaluation batch of a rank: each on one rank, as many batches on all."""
    for step in range(-(-size // (batch * world_size))):
        begin, end = share(step, batch, rank, world_size)
        yield np.arange(min(begin, size), min(end, size))
