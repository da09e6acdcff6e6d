"""Batches of a split in the order of the training, alike in every framework, made ahead by a thread.

A corpus is cut into windows of `length` tokens, one behind the other, each with one token more for the
targets. Training is one long list of windows: a permutation of all of them, then another, and so on. A
step takes the next global batch of that list, each rank a consecutive part of it. Every place follows
from its number alone, so that a training goes on at any step, whatever the number of ranks.
"""

import itertools
import queue
import threading
import weakref

import numpy as np

from trainmark.workloads.common import chance
from trainmark.workloads.tokens.dataset import Records
from trainmark.workloads.tokens.formats import mlm
from trainmark.workloads.tokens.formats.mapped import UnfitTokens

FEISTEL_ROUNDS = 6  # of the Feistel network; four already pass for random (Luby, Rackoff 1988)
ORDER_BLOCK = 4096  # places that are computed together


def window_count(tokens, length):
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
    for number in range(FEISTEL_ROUNDS):
        left, right = right, left ^ (chance.bits(chance.key(key, number), right) & mask)
    return (left << half) | right


class WindowOrder:
    """The list of windows that a training goes through: pass after pass over the corpus."""

    def __init__(self, size, seed):
        self.size, self.seed = size, seed
        self._recent = {}

    def windows(self, begin, end):
        """Return the windows at these places of the list."""
        parts = []
        while begin < end:
            number, place = divmod(begin, self.size)
            block, offset = divmod(place, ORDER_BLOCK)
            part = self._block(number, block)[offset : offset + end - begin]
            parts.append(part)
            begin += len(part)
        return np.concatenate(parts) if parts else np.empty(0, np.int64)

    def _block(self, number, block):
        """Return one block of a pass; the last two are remembered."""
        if (number, block) not in self._recent:
            while len(self._recent) > 1:
                del self._recent[min(self._recent)]
            places = np.arange(block * ORDER_BLOCK, min((block + 1) * ORDER_BLOCK, self.size))
            self._recent[number, block] = permuted(places, self.size, chance.key(self.seed, number))
        return self._recent[number, block]


def steps_per_epoch(size, length, global_batch, epoch_tokens=None):
    """How many steps an epoch has: so many tokens, or as many full batches as a smaller corpus has."""
    windows_of_epoch = size if epoch_tokens is None else min(size, epoch_tokens // length)
    return max(1, windows_of_epoch // global_batch)


def rank_share(step, sequences, rank, world_size):
    """Return the places (first, one behind the last) of a rank in a step, steps counted over all epochs."""
    begin = (step * world_size + rank) * sequences
    return begin, begin + sequences


def evaluation_shares(size, batch, rank, world_size):
    """Yield the windows of each evaluation batch of a rank: each on one rank, as many batches on all."""
    for step in range(-(-size // (batch * world_size))):
        begin, end = rank_share(step, batch, rank, world_size)
        yield np.arange(min(begin, size), min(end, size))


BATCHES_AHEAD = 3  # batches that lie ready
BATCHES_IN_USE = 2  # batches that stay untouched after they were given out
RING_BATCHES = BATCHES_AHEAD + BATCHES_IN_USE + 2  # with the one in the making and the one being handed over
POLL_SECONDS = 0.1
END = object()


class Prefetched:
    """An iterator over `make(step)` for all steps; what `make` raises is raised by `next`."""

    def __init__(self, make, steps):
        self._ready, self._over = queue.Queue(BATCHES_AHEAD), threading.Event()
        arguments = make, iter(steps), self._ready, self._over
        # The thread does not hold this iterator, which would then never be collected.
        self._thread = threading.Thread(target=_work, args=arguments, name="trainmark-tokens", daemon=True)
        self._started = False

    def __iter__(self):
        return self

    def __next__(self):
        if self._over.is_set():
            raise StopIteration
        if not self._started:
            self._started = True
            self._thread.start()
        batch, error = self._ready.get()
        if batch is END:
            self.close()
            if error:
                raise error
            raise StopIteration
        return batch

    def close(self):
        """End the thread; what it has made is thrown away."""
        if self._over.is_set():
            return
        self._over.set()
        while not self._ready.empty():  # so that a thread which waits for room sees the end at once
            self._ready.get_nowait()
        if self._started and self._thread is not threading.current_thread():
            self._thread.join()

    def __del__(self):
        if hasattr(self, "_thread"):
            self.close()


def _work(make, steps, ready, over):
    try:
        for step in steps:
            if not _put_until_over(ready, over, (make(step), None)):
                return
    except BaseException as error:  # noqa: BLE001 - whatever it is, the caller is to have it
        _put_until_over(ready, over, (END, error))
    else:
        _put_until_over(ready, over, (END, None))


def _put_until_over(ready, over, item):
    """Whether it was taken before the end."""
    while not over.is_set():
        try:
            ready.put(item, timeout=POLL_SECONDS)
            return True
        except queue.Full:
            pass
    return False


NO_LABEL = -1


class TokenLoader:
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
        self.order = WindowOrder(self.size, seed)
        self._passes = weakref.WeakSet()
        self._rings = {}

    def training(self, first, count=None):
        """Yield `count` batches from step `first` on, without an end where it is None.

        Steps are counted over all epochs.
        """

        def make(step):
            begin, end = rank_share(step, self.sequences, self.rank, self.world_size)
            return self._batch(self.order.windows(begin, end), self.sequences)

        return self._prefetched(
            make, itertools.count(first) if count is None else range(first, first + count)
        )

    def evaluation(self):
        """Yield every sequence once over all ranks; as many batches on each, the last ones padded."""
        shares = evaluation_shares(self.size, self.evaluated, self.rank, self.world_size)
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
            self._check_records(arrays[2][:count], arrays[3][:count])
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
            raise UnfitTokens(
                "{}: its {} files have the id {}, and the model's vocabulary has {}.".format(
                    self.split.folder, self.split.split, largest if least >= 0 else least, self.vocabulary
                )
            )

    def _check_records(self, lengths, positions):
        """Refuse what would be read from beyond a sequence."""
        if len(lengths) and (
            lengths.min() < 1 or lengths.max() > self.length or positions.max(initial=0) >= self.length
        ):
            raise UnfitTokens(
                "{}: its {} records have a length or a masked position beyond their {} tokens; "
                "run `trainmark data verify`.".format(self.split.folder, self.split.split, self.length)
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
            buffers = [self._arrays(rows, self.allocate) for _ in range(RING_BATCHES)]
            self._rings[rows] = itertools.cycle(buffers)
        return self._rings[rows]


def sequences_in(split, length):
    """How many sequences of this length a split has; its records have the length that they have."""
    return split.count if isinstance(split, Records) else window_count(split.count, length)
