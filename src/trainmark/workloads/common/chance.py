"""Random numbers that follow from a key and a counter, and sketches of tensors by random signs.

There is no state: the same numbers in any order and any thread. The mixing is SplitMix64's (Steele, Lea,
Flood, "Fast splittable pseudorandom number generators", 2014). A sketch is eight sums of the elements
under fixed random signs: the root mean square of the difference of two estimates the norm of the
difference of the tensors (Achlioptas 2003), so that millions of weights can be compared with a reference
of a few kilobytes.
"""

import numpy as np

MASK = (1 << 64) - 1
GOLDEN = 0x9E3779B97F4A7C15
FIRST, SECOND = 0xBF58476D1CE4E5B9, 0x94D049BB133111EB
UNIT = 2.0**-53


def mix(value):
    """64 bits to 64 bits, one to one, every bit of the answer depending on every bit of the question."""
    value = ((value ^ (value >> 30)) * FIRST) & MASK
    value = ((value ^ (value >> 27)) * SECOND) & MASK
    return value ^ (value >> 31)


def key(*parts):
    """One key of several whole numbers; their order matters."""
    value = 0
    for part in parts:
        value = mix((value + GOLDEN + part) & MASK)
    return value


def uniforms(seed_key):
    """Numbers in [0, 1), one after another."""
    state = seed_key
    while True:
        state = (state + GOLDEN) & MASK
        yield (mix(state) >> 11) * UNIT


def bits(seed_key, counters):
    """What `mix` gives for every counter of an array of uint64."""
    value = (counters + np.uint64(1)) * np.uint64(GOLDEN) + np.uint64(seed_key)
    value = (value ^ (value >> np.uint64(30))) * np.uint64(FIRST)
    value = (value ^ (value >> np.uint64(27))) * np.uint64(SECOND)
    return value ^ (value >> np.uint64(31))


SKETCHES = 8


def sketch(name, value):
    """Return the sums; the signs follow from the name and the size alone."""
    flat = np.asarray(value, np.float64).reshape(-1)
    random = np.random.RandomState([ord(letter) for letter in name])
    bits = np.frombuffer(random.bytes(-(-flat.size // 8) * SKETCHES), np.uint8).reshape(SKETCHES, -1)
    signs = (np.unpackbits(row)[: flat.size].astype(np.float64) for row in bits)
    total = flat.sum()
    return [float(2.0 * flat.dot(ones) - total) for ones in signs]


def float64_difference(one, other):
    return one.astype(np.float64) - other.astype(np.float64)
