"""Which images make which batch: the same for every framework, whatever the number of workers."""

import numpy as np

from trainmark.workloads.common import chance


def epoch_order(count, seed, epoch):
    """A permutation of the images for one epoch, from (seed, epoch) alone.

    Sorted by a hash of each index rather than shuffled by numpy: its generators may change between the
    versions that the frameworks pin.
    """
    keys = chance.bits(chance.key(seed, epoch), np.arange(count, dtype=np.uint64))
    return np.argsort(keys, kind="stable")


def steps_per_epoch(count, batch, world_size):
    return count // (batch * world_size)


def training_share(count, batch, rank, world_size):
    """(steps, batch) places in the epoch's order: full batches only, as many on every rank, none twice.

    A step's global batch is one run of the order, so that it holds the same images however many ranks
    share it.
    """
    steps = steps_per_epoch(count, batch, world_size)
    return np.arange(steps * batch * world_size).reshape(steps, world_size, batch)[:, rank]


def evaluation_share(count, rank, world_size):
    """The images that this rank evaluates: each exactly once over all ranks."""
    return np.arange(rank, count, world_size)


def evaluation_batches(count, batch, world_size):
    """How many batches every rank evaluates: as many on each, the last ones padded."""
    longest = -(-count // world_size)
    return -(-longest // batch)
