"""How large the pictures are: widths, heights and bytes as in ImageNet.

The tar of ImageNet's training pictures has 147.9 GB for 1,281,167 of them: 115 kB each with a tar's header
and padding. Most are 500 × 375 (Flickr's medium size, in 4:3) or 500 × 333 (in 3:2), lying or standing, some
much smaller or larger. The shares below are ours; they give that order.
"""

from __future__ import annotations

import math

import numpy as np

WIDTH, HEIGHT = 500, 375
# Aimed at, at 500 × 375; with smaller pictures among them a set comes out near 110 kB.
BYTES = 131_000
# Relative to 500 × 375; the rest has any shape between 9:16 and 16:9.
COMMON = (((1.0, 1.0), 0.46), ((0.75, 4 / 3), 0.16), ((1.0, 0.888), 0.16), ((0.666, 4 / 3), 0.06))
OTHER_SCALE = (0.4, 1.45)
# Bytes vary about the mean as a logarithmic normal with this deviation.
SPREAD = 0.4
# JPEG quality and the bytes that our pictures then have at 500 × 375, at any difficulty; found by trying.
# Most of ImageNet has 96, without chroma subsampling.
BYTES_AT = {
    50: 27_000, 60: 30_000, 70: 36_000, 80: 45_000, 85: 53_000, 90: 67_000, 93: 82_000,
    95: 101_000, 96: 117_000, 97: 133_000, 98: 152_000, 99: 186_000, 100: 228_000,
}  # fmt: skip


def picture_size(random: np.random.Generator, width: int, height: int) -> tuple[int, int]:
    """For sets in which most pictures are of this width and height."""
    chosen = random.random()
    across, down = random.random(), random.random()
    for (wide, tall), share in COMMON:
        if chosen < share:
            return max(1, round(width * wide)), max(1, round(height * tall))
        chosen -= share
    scale = OTHER_SCALE[0] + (OTHER_SCALE[1] - OTHER_SCALE[0]) * across
    shape = math.exp((2 * down - 1) * math.log(4 / 3))
    return max(1, round(width * scale * shape)), max(1, round(height * scale / shape))


def jpeg_quality(random: np.random.Generator) -> int:
    """The quality that gives a picture about as many bytes as are drawn for it."""
    normal = math.sqrt(-2 * math.log(1 - random.random())) * math.cos(2 * math.pi * random.random())
    wanted = BYTES * math.exp(SPREAD * normal - SPREAD * SPREAD / 2)
    return round(float(np.interp(wanted, list(BYTES_AT.values()), list(BYTES_AT))))
