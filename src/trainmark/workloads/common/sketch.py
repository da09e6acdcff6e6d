"""Sketches of tensors: eight sums of the elements under fixed random signs.

The root mean square of the difference of two sketches estimates the norm of the difference of the tensors
(Achlioptas 2003), so that millions of weights can be compared with a reference of a few kilobytes.
"""

import numpy as np

SKETCHES = 8


def sketch(name, value):
    """Return the sums; the signs follow from the name and the size alone."""
    flat = np.asarray(value, np.float64).reshape(-1)
    random = np.random.RandomState([ord(letter) for letter in name])
    bits = np.frombuffer(random.bytes(-(-flat.size // 8) * SKETCHES), np.uint8).reshape(SKETCHES, -1)
    signs = (np.unpackbits(row)[: flat.size].astype(np.float64) for row in bits)
    total = flat.sum()
    return [float(2.0 * flat.dot(ones) - total) for ones in signs]


def difference(one, other):
    return one.astype(np.float64) - other.astype(np.float64)
