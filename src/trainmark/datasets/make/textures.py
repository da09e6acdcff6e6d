"""Textures of one period, drawn from a generator: waves, cells and noise of one wavelength."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

Field = npt.NDArray[np.float64]
SIDE = 256
# Periods of the pattern along one side of the tile: coarse enough to be seen in a small picture, fine enough
# that a crop of a tenth of the area shows some.
FEWEST, MOST = 3, 9
GOLDEN = 0.6180339887498949
# The deviation of the blur, in pixels of the tile.
SOFTNESS = 1.5


def texture(random: np.random.Generator, number: int) -> Field:
    """A tile that continues over its edges, of mean 0 and deviation 1.

    Tiles of neighbouring numbers are of different families and wavelengths, so that few are far apart.
    """
    periods = FEWEST * (MOST / FEWEST) ** (number * GOLDEN % 1.0)
    return _standard(_soft(FAMILIES[number % len(FAMILIES)](random, number // len(FAMILIES), periods)))


def mixed(own: Field, common: Field, likeness: float) -> Field:
    """The same tile with so much of a common one in it."""
    return _standard((1 - likeness) * own + likeness * common)


def levels(tile: Field, deviation: float) -> npt.NDArray[np.uint8]:
    """As bytes around the middle: every tile is equally bright and of equal contrast."""
    clipped: npt.NDArray[np.uint8] = np.clip(np.rint(128 + deviation * tile), 0, 255).astype(np.uint8)
    return clipped


def _waves(random: np.random.Generator, number: int, periods: float) -> Field:
    """One to three plane waves, added or multiplied: stripes, plaids, checks and honeycombs."""
    waveform = WAVEFORMS[number // 3 % len(WAVEFORMS)]
    count = 1 + number % 3
    spread = np.pi / count * random.uniform(0.7, 1.3)
    first = random.uniform(0, np.pi)
    waves = [
        waveform(
            _plane(periods * random.uniform(0.8, 1.25), first + spread * wave, random.uniform(0, 2 * np.pi))
        )
        for wave in range(count)
    ]
    together: Field = np.prod(waves, axis=0) if random.random() < 0.5 else np.sum(waves, axis=0)
    return together


def _cells(random: np.random.Generator, number: int, periods: float) -> Field:
    """The distance to the nearest of some points, or to the border between two: dots, stones, cracks."""
    count = round(periods**2)
    points = random.uniform(0, SIDE, (count, 2))
    places = np.arange(SIDE) + 0.5
    across, down = (_around(places[:, None] - points[None, :, axis]) for axis in (0, 1))
    near = np.full((SIDE, SIDE), np.inf)
    second = near.copy()
    for point in range(count):
        distance = down[:, None, point] ** 2 + across[None, :, point] ** 2
        second = np.minimum(second, np.maximum(near, distance))
        near = np.minimum(near, distance)
    rim = np.sqrt(second) - np.sqrt(near)
    scale = SIDE / np.sqrt(count)
    shapes: tuple[Field, ...] = (
        np.sqrt(near),
        np.tanh(8 * rim / scale),
        np.tanh(12 * (np.sqrt(near) / scale - 0.28)),
    )
    return shapes[number % 3]


def _noise(random: np.random.Generator, number: int, periods: float) -> Field:
    """Noise of one wavelength, along one direction or all: marble, wood, spots, fur."""
    width, direction = random.uniform(0.12, 0.45), random.uniform(0, np.pi)
    narrow, sharp = (0.0, 6.0, 2.0)[number % 3], (0.0, 4.0, 1.2)[number // 3 % 3]
    cycles = np.fft.fftfreq(SIDE, 1 / SIDE)
    down, across = cycles[:, None], cycles[None, :]
    radius, angle = np.hypot(down, across), np.arctan2(down, across)
    passed = np.exp(
        -(((radius - periods) / (width * periods)) ** 2) + narrow * np.cos(2 * (angle - direction))
    )
    white = np.fft.fft2(random.random((SIDE, SIDE)) - 0.5)
    field = _standard(np.fft.ifft2(white * passed).real)
    return np.tanh(sharp * field) if sharp else field


FAMILIES: tuple[Callable[[np.random.Generator, int, float], Field], ...] = (_waves, _cells, _noise)
WAVEFORMS: tuple[Callable[[Field], Field], ...] = (
    np.sin,
    lambda phase: np.tanh(6 * np.sin(phase)),
    lambda phase: np.abs(np.sin(phase / 2)),
    lambda phase: phase / (2 * np.pi) % 1.0,
)


def _plane(cycles: float, direction: float, phase: float) -> Field:
    """The phase of a plane wave, bent to whole periods so that the tile continues over its edges."""
    turns = np.arange(SIDE) * (2 * np.pi / SIDE)
    down, across = round(cycles * np.sin(direction)), round(cycles * np.cos(direction))
    field: Field = down * turns[:, None] + across * turns[None, :] + phase
    # An even number of periods: one of the waveforms has half the frequency.
    return 2 * np.pi + field if down or across else field + turns[None, :]


def _around(distance: Field) -> Field:
    """The shorter way, over the tile's edge where that is nearer."""
    shorter: Field = np.minimum(np.abs(distance), SIDE - np.abs(distance))
    return shorter


def _soft(field: Field) -> Field:
    """Without what is finer than a pixel of the picture, which would show as steps."""
    cycles = np.fft.fftfreq(SIDE)
    passed = np.exp(-2 * (np.pi * SOFTNESS) ** 2 * (cycles[:, None] ** 2 + cycles[None, :] ** 2))
    return np.fft.ifft2(np.fft.fft2(field) * passed).real


def _standard(field: Field) -> Field:
    centred: Field = field - field.mean()
    scaled: Field = centred / max(float(centred.std()), 1e-9)
    return scaled
