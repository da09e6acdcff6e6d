"""What lies over a whole picture: light and shade, coarse noise, and a fine grain."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Bytes = npt.NDArray[np.uint8]
Signed = npt.NDArray[np.int8]
SIDE = 1024
SHADE_DEVIATION, SHADE_LENGTH = 9.0, 160.0
COARSE_LENGTH = 8.0
GRAIN_DEVIATION = 1.5
# Sums of three fields stay within a signed byte.
MOST_SHADE, MOST_COARSE, MOST_GRAIN = 24, 60, 6


@dataclass(frozen=True)
class Weather:
    """Fields that continue over their edges; a picture shows a window of each."""

    shade: Signed
    coarse: Signed
    grain: Signed


def weather(random: np.random.Generator, noise: float) -> Weather:
    """`noise`: the deviation of the coarse noise in grey levels."""
    return Weather(
        shade=_smooth(random, SHADE_LENGTH, SHADE_DEVIATION, MOST_SHADE),
        coarse=_smooth(random, COARSE_LENGTH, noise, MOST_COARSE),
        grain=_smooth(random, 0.0, GRAIN_DEVIATION, MOST_GRAIN),
    )


def weathered(random: np.random.Generator, luma: Bytes, fields: Weather) -> Bytes:
    over = _window(random, fields.grain, luma.shape) + _window(random, fields.shade, luma.shape)
    over += _window(random, fields.coarse, luma.shape)
    total = np.add(luma, over, dtype=np.int16)
    clipped: Bytes = np.clip(total, 0, 255, out=total).astype(np.uint8)
    return clipped


def _window(random: np.random.Generator, field: Signed, shape: tuple[int, ...]) -> Signed:
    height, width = shape
    if height <= SIDE and width <= SIDE:
        top, left = int(random.integers(SIDE - height + 1)), int(random.integers(SIDE - width + 1))
        return field[top : top + height, left : left + width]
    top, left = random.integers(SIDE, size=2).tolist()
    return field[np.ix_((top + np.arange(height)) % SIDE, (left + np.arange(width)) % SIDE)]


def _smooth(random: np.random.Generator, length: float, deviation: float, most: int) -> Signed:
    """Noise with nothing shorter than this many pixels in it."""
    cycles = np.fft.fftfreq(SIDE)
    passed = np.exp(-((cycles[:, None] ** 2 + cycles[None, : SIDE // 2 + 1] ** 2) * length**2))
    field = np.fft.irfft2(np.fft.rfft2(random.random((SIDE, SIDE)) - 0.5) * passed, s=(SIDE, SIDE))
    scaled = (field - field.mean()) * (deviation / field.std())
    clipped: Signed = np.clip(np.rint(scaled), -most, most).astype(np.int8)
    return clipped
