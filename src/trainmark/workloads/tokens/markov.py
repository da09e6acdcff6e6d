"""Walker's alias method in whole numbers: one table lookup draws from any distribution.

A distribution over n outcomes becomes n columns of the same weight, each shared by at most two outcomes
(Walker 1977; Vose 1991). The tables are made in integer arithmetic, so that they and what is drawn from them
are the same bytes on every machine.
"""

import numpy as np

from trainmark.workloads.common import chance

COLUMN_SHIFT = np.uint64(32)
LOW_BITS = np.uint64((1 << 32) - 1)
COLUMN_WEIGHT = 1 << 32  # the weight of a column


class AliasTables:
    """The tables of several distributions, one behind the other."""

    def __init__(self, distributions):
        pairs = [_alias_table(weights) for weights in distributions]
        self.limits = np.concatenate([limits for limits, _ in pairs])
        self.others = np.concatenate([others for _, others in pairs])

    def draw(self, bits, begins, sizes):
        """Return an outcome for each 32-bit number, of the table that begins there and is that long."""
        product = bits * sizes
        column = (product >> COLUMN_SHIFT).astype(np.int64)
        place = begins + column
        return np.where((product & LOW_BITS) < self.limits[place], column, self.others[place])


def _alias_table(weights):
    """Return the limit of each column in units of 1/FULL, and who has what is above."""
    total, size = sum(weights), len(weights)
    limits, others = np.full(size, COLUMN_WEIGHT, np.uint64), np.arange(size)
    # Exact: weights times n against the total, all Python integers.
    left = [weight * size for weight in weights]
    small = [index for index in range(size) if left[index] < total]
    large = [index for index in range(size) if left[index] >= total]
    while small and large:
        lower, upper = small.pop(), large[-1]
        limits[lower] = left[lower] * COLUMN_WEIGHT // total
        others[lower] = upper
        left[upper] -= total - left[lower]
        if left[upper] < total:
            small.append(large.pop())
    return limits, others


MOST_TRANSITIONS = 1 << 22
BURN_IN = 4096  # tokens that are drawn and dropped, so that the beginning is stationary
ZIPF_UNIT = 1 << 40  # a weight of 1
FACTOR_BITS = 12  # of a random factor of a transition's weight
SHORTEST_BLOCK = 1024  # tokens of the chain that are drawn one after another; blocks are drawn side by side
CHUNK = 1 << 21  # tokens whose classes are drawn at a time
PART = 1 << 15  # tokens whose ids are drawn at a time: their arrays stay in the cache
CONVERGED = 1e-15
SPLITS = {"train": 1, "val": 2}


class Markov:
    """One source: `entropy` and `plateaus` in nats a token, and `draw` of any part of its corpora."""

    def __init__(self, vocabulary, order=2, classes=16, seed=0):
        check(vocabulary, order, classes)
        self.vocabulary, self.order, self.classes, self.seed = vocabulary, order, classes, seed
        self.states = classes**order
        self._members = [
            [ZIPF_UNIT // (rank + 1) for rank in range(group, vocabulary, classes)]
            for group in range(classes)
        ]
        self._weights = self._transition_weights()
        # What a context becomes by forgetting its oldest class: a lookup is quicker than a division.
        self._shifted = np.arange(self.states) % (self.states // classes) * classes
        self._prepared = None

    def _transition_weights(self):
        """Return (states, classes) whole numbers.

        A context's weight for a class is the class's share of the Zipf law times the squares of one random
        factor for each suffix of the context, so that every token of it tells something and all of them more.
        """
        shares = [max(1, (sum(members) << 16) // ZIPF_UNIT) for members in self._members]
        weights = np.tile(np.array(shares, object), (self.states, 1))
        for depth in range(1, self.order + 1):
            suffixes = self.classes**depth
            counters = np.arange(suffixes * self.classes, dtype=np.uint64)
            bits = chance.bits(chance.key(self.seed, 0, depth), counters) >> np.uint64(64 - FACTOR_BITS)
            factors = (bits.astype(np.int64) + 1).astype(object).reshape(suffixes, self.classes) ** 2
            weights *= factors[np.arange(self.states) % suffixes]
        return weights

    # The truth.

    def transitions(self):
        """Return the probability of each class after each context, the last class being its lowest digit."""
        weights = self._weights.astype(np.float64)
        return weights / weights.sum(axis=1, keepdims=True)

    def stationary(self):
        """Return the stationary distribution over the contexts, by power iteration."""
        rows = self.transitions().reshape(self.classes, -1, self.classes)
        now = np.full(self.states, 1.0 / self.states)
        for _ in range(100000):
            following = (now.reshape(self.classes, -1, 1) * rows).sum(axis=0).reshape(-1)
            following /= following.sum()
            if np.abs(following - now).sum() < CONVERGED * self.states:
                return following
            now = following
        raise ArithmeticError("the stationary distribution did not converge")

    def plateaus(self):
        """Return the best loss of a model that sees the last 0, 1, …, `order` tokens: the entropy at last."""
        joint = self.stationary()[:, None] * self.transitions()
        within = sum(
            share * entropy(np.array(members, np.float64) / sum(members))
            for share, members in zip(joint.sum(axis=0).tolist(), self._members)
        )
        values = []
        for depth in range(self.order + 1):
            seen = joint.reshape(-1, self.classes**depth, self.classes).sum(axis=0)
            values.append(entropy(seen) - entropy(seen.sum(axis=1)) + within)
        return values

    @property
    def entropy(self):
        return self.plateaus()[-1]

    # The draws.

    def draw(self, split, begin, count, state=None):
        """Return `count` ids from `begin` on, and the context behind them.

        `state` is the context before them, None at the beginning of the split.
        """
        if state is None:
            if begin:
                raise ValueError("the context before token {} is needed".format(begin))
            state = self._classes(self._bits(split, 0, BURN_IN), 0)[1]
        ids = np.empty(count, np.uint32)
        for at in range(0, count, CHUNK):
            bits = self._bits(split, BURN_IN + begin + at, min(CHUNK, count - at))
            groups, state = self._classes(bits, state)
            for part in range(at, at + len(groups), PART):
                inner = slice(part - at, part - at + PART)
                ids[part : part + PART][: len(groups[inner])] = self._ids(bits[inner], groups[inner])
        return ids, state

    def _tables(self):
        if self._prepared is None:
            chain = AliasTables([row.tolist() for row in self._weights])
            members = AliasTables(self._members)
            sizes = np.array([len(group) for group in self._members])
            self._prepared = chain, members, sizes.astype(np.uint64), np.cumsum(sizes) - sizes
        return self._prepared

    def _bits(self, split, begin, count):
        """Return 64 random bits for each place: the upper half draws the class, the lower the id."""
        counters = np.arange(begin, begin + count, dtype=np.uint64)
        return chance.bits(chance.key(self.seed, SPLITS[split]), counters)

    def _classes(self, bits, state):
        """Return the class at each place, and the context behind the last.

        The chain is one, but drawn as many blocks side by side: each block begins from a guessed context.
        Then each is drawn again from the true end of the block before it, with the same random numbers, until
        it meets the first attempt; from there on they are the same. That meeting takes a few dozen steps.
        """
        count = len(bits)
        blocks = max(1, count // SHORTEST_BLOCK)
        length = -(-count // blocks)
        padded = np.zeros(blocks * length, np.uint64)
        np.right_shift(bits, COLUMN_SHIFT, out=padded[:count])
        columns = np.ascontiguousarray(padded.reshape(blocks, length).T)
        drawn = np.empty((length, blocks), np.int64)
        starts = np.zeros(blocks, np.int64)
        starts[0] = state
        ends = self._first_attempt(columns, drawn, starts)
        stale = np.arange(1, blocks)
        while len(stale):
            before = ends.copy()
            self._draw_again(columns, drawn, stale, before[stale - 1], ends)
            changed = np.flatnonzero(ends != before)
            stale = changed[changed < blocks - 1] + 1
        classes = np.ascontiguousarray(drawn.T).reshape(-1)[:count]
        return classes, self._context(classes, state)

    def _first_attempt(self, bits, drawn, state):
        """Draw every block from its context into its column; return the contexts behind them."""
        tables, classes = self._tables()[0], np.uint64(self.classes)
        for step in range(len(bits)):
            begins = state * self.classes
            drawn[step] = tables.draw(bits[step], begins, classes)
            state = self._shifted[state] + drawn[step]
        return state

    def _draw_again(self, bits, drawn, blocks, state, ends):
        """Draw these blocks from these contexts until the last `order` classes are as they were before.

        A block that never gets there has another end, which is written into `ends`.
        """
        tables, classes = self._tables()[0], np.uint64(self.classes)
        alike = np.zeros(len(blocks), np.int64)
        for step in range(len(bits)):
            begins = state * self.classes
            groups = tables.draw(bits[step, blocks], begins, classes)
            alike = np.where(drawn[step, blocks] == groups, alike + 1, 0)
            drawn[step, blocks] = groups
            going = alike < self.order
            state = (self._shifted[state] + groups)[going]
            blocks, alike = blocks[going], alike[going]
            if not len(blocks):
                return
        ends[blocks] = state

    def _context(self, classes, state):
        for group in classes[-self.order :].tolist():
            state = (state * self.classes + group) % self.states
        return state

    def _ids(self, bits, groups):
        _, members, sizes, begins = self._tables()
        return members.draw(bits & LOW_BITS, begins[groups], sizes[groups]) * self.classes + groups


def check(vocabulary, order, classes):
    """ValueError, in one sentence, where there is no such source."""
    if order < 1:
        raise ValueError("the order is {}; it is at least 1.".format(order))
    if classes < 2:
        raise ValueError("{} classes; there are at least 2.".format(classes))
    if vocabulary < classes:
        raise ValueError("a vocabulary of {} has no {} classes.".format(vocabulary, classes))
    if classes ** (order + 1) > MOST_TRANSITIONS:
        raise ValueError(
            "{} classes at order {} have {} transitions, at most {} are possible; lower one of them.".format(
                classes, order, classes ** (order + 1), MOST_TRANSITIONS
            )
        )


def entropy(probabilities):
    """Return the entropy in nats; zeros add nothing."""
    positive = probabilities[probabilities > 0]
    return float(-(positive * np.log(positive)).sum())


def best_loss(plateaus, length):
    """Return the least loss over windows of `length` tokens whose first has no context but itself.

    The target behind the i-th token of a window is predicted from i tokens.
    """
    order = len(plateaus) - 1
    return sum(plateaus[min(seen, order)] for seen in range(1, length + 1)) / length
