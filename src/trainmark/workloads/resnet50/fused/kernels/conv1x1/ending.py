"""What becomes of a gradient before it is stored: what is added, what is stopped, what is summed."""

from trainmark.workloads.resnet50.fused.terms import Normed

FREE, RECTIFIED, JOINED = range(3)
ADDS_NONE, ADDS, ADDS_SPREAD = range(3)


class Ending:
    """As numbers and pointers for a kernel; where there is nothing, a pointer that nobody reads stands in."""

    def __init__(self, onto=None, addend=None, spread=None):
        self.onto, self.addend = onto, addend
        self.adds = ADDS_NONE if addend is None else ADDS if spread is None else ADDS_SPREAD
        self.picture = spread[1:] if spread else (1, 1)
        self.stop = FREE if onto is None else RECTIFIED if isinstance(onto, Normed) else JOINED

    def matrices(self, anything):
        """The addend; the operand, raw or as a value, and its norm."""
        addend = anything if self.addend is None else self.addend
        if self.stop == RECTIFIED:
            return addend, self.onto.raw, self.onto.factor, self.onto.offset, self.onto.mean
        read = self.onto.value if self.stop == JOINED else anything
        return addend, read, anything, anything, anything

    def sums(self, partial):
        """What the operand's norm needs, or only the totals, which are all that a block's end needs."""
        return {FREE: None, RECTIFIED: partial, JOINED: partial[0]}[self.stop]
