"""Batches of a split in the order of the training: the same numbers in every framework."""

import itertools
import weakref

import numpy as np

from trainmark.workloads.tokens import order
from trainmark.workloads.tokens.dataset import Records
from trainmark.workloads.tokens.formats import mlm
from trainmark.workloads.tokens.prefetch import RING, Prefetched
from trainmark.workloads.tokens.unfit import Unfit

NO_LABEL = -1


class Loader:
    """Batches of int32 arrays: (tokens, targets), of MLM records those of `mlm.FIELDS`.

    `sequences` are those of a rank and step, `evaluated` those of an evaluation batch. Arrays that `allocate`
    makes are used again two batches after they were given out; without it every batch has its own.
    """

    def __init__(
        self,
        split,
        length,
        sequences,
        evaluated,
        rank=0,
        world_size=1,
        seed=0,
        vocabulary=None,
        allocate=None,
    ):
        self.split, self.length, self.sequences, self.evaluated = split, length, sequences, evaluated
        self.rank, self.world_size, self.vocabulary, self.allocate = rank, world_size, vocabulary, allocate
        self.size = sequences_in(split, length)
        self.order = order.Order(self.size, seed)
        self._passes = weakref.WeakSet()
        self._rings = {}

    def training(self, first, count=None):
        """Yield `count` batches from step `first` on, without an end where it is None.

        Steps are counted over all epochs.
        """

        def make(step):
            begin, end = order.share(step, self.sequences, self.rank, self.world_size)
            return self._batch(self.order.windows(begin, end), self.sequences)

        return self._prefetched(
            make, itertools.count(first) if count is None else range(first, first + count)
        )

    def evaluation(self):
        """Yield every sequence once over all ranks; as many batches on each, the last ones padded."""
        shares = order.evaluation_shares(self.size, self.evaluated, self.rank, self.world_size)
        return self._prefetched(lambda share: self._batch(share, self.evaluated), shares)

    def close(self):
        """End the threads of every iterator that is still open."""
        for iterator in list(self._passes):
            iterator.close()

    def _prefetched(self, make, steps):
        made = Prefetched(make, steps)
        self._passes.add(made)
        return made

    def _batch(self, indices, rows):
        arrays = next(self._ring(rows)) if self.allocate else self._arrays(rows)
        count = len(indices)
        if isinstance(self.split, Records):
            for array, values in zip(arrays, self.split.read(indices)):
                array[:count] = values
            ids = arrays[0], arrays[4]
            padding = (0, 0, 1, 0, NO_LABEL, NO_LABEL)  # a sequence without a valid token has no attention
        else:
            self.split.fill(indices, arrays[0], arrays[1])
            ids, padding = arrays, (0, NO_LABEL)
        self._check(ids, count)
        for array, value in zip(arrays, padding):
            array[count:] = value
        return arrays

    def _check(self, ids, count):
        """Refuse what the model's embedding does not have: some frameworks would train on without a word."""
        if self.vocabulary is None or not count:
            return
        largest = max(int(array[:count].max()) for array in ids)
        least = int(ids[0][:count].min())
        if largest >= self.vocabulary or least < 0:
            raise Unfit(
                "{}: its {} files have the id {}, and the model's vocabulary has {}.".format(
                    self.split.folder, self.split.split, largest if least >= 0 else least, self.vocabulary
                )
            )

    def _arrays(self, rows, allocate=np.empty):
        shapes = [(rows, self.length)] * 2
        if isinstance(self.split, Records):
            labels = (rows, self.split.predictions)
            shapes += [(rows,), labels, labels, (rows,)]
            assert len(shapes) == len(mlm.FIELDS)
        return tuple(allocate(shape, np.dtype(np.int32)) for shape in shapes)

    def _ring(self, rows):
        if rows not in self._rings:
            buffers = [self._arrays(rows, self.allocate) for _ in range(RING)]
            self._rings[rows] = itertools.cycle(buffers)
        return self._rings[rows]


def sequences_in(split, length):
    """How many sequences of this length a split has; its records have the length that they have."""
    return split.count if isinstance(split, Records) else order.windows(split.count, length)
