"""What becomes of a gradient before it is stored: what is added, what is stopped, what is summed."""

from trainmark.workloads.resnet50.fused.terms import Normed

FREE, RECTIFIED, JOINED, JOINED_NORMED = range(4)
ADDS_NONE, ADDS, ADDS_SPREAD = range(3)


class Ending:
    """As numbers and pointers for a kernel; where there is nothing, a pointer that nobody reads stands in."""

    def __init__(self, onto, addend, spread):
        self.onto, self.addend = onto, addend
        self.adds = ADDS_NONE if addend is None else ADDS if spread is None else ADDS_SPREAD
        self.picture = spread[1:] if spread else (1, 1)
        self.stop = FREE
        if isinstance(onto, Normed):
            self.stop = RECTIFIED
        elif onto is not None:
            self.stop = JOINED_NORMED if isinstance(onto.shortcut, Normed) else JOINED

    def matrices(self, any_matrix, any_vector):
        """The addend; the operand, raw and as a value, with its norm; the shortcut's raw values and mean."""
        onto, addend = self.onto, any_matrix if self.addend is None else self.addend
        if self.stop == FREE:
            return (addend, any_matrix, any_matrix, *[any_vector] * 3, any_matrix, any_vector)
        norm = onto if self.stop == RECTIFIED else onto.norm
        value = norm.raw if self.stop == RECTIFIED else onto.value
        other = onto.shortcut if self.stop == JOINED_NORMED else norm
        return (addend, norm.raw, value, norm.factor, norm.offset, norm.mean, other.raw, other.mean)

    def sums(self, partial):
        """For each norm of the operand the two rows that it needs, of three."""
        rows = partial[:2], partial[::2]  # slices: a list of numbers would be copied to the device
        return list(rows[: {FREE: 0, JOINED_NORMED: 2}.get(self.stop, 1)])
