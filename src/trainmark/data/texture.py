"""What pictures are drawn from: closed outlines, textures of one period, and noise over a whole picture."""

from __future__ import annotations

import cmath
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Points = npt.NDArray[np.float64]
POINTS = 72
ANGLES = np.arange(POINTS) * (2 * np.pi / POINTS)
HOLES = (0.0, 0.0, 0.4, 0.6)


@dataclass(frozen=True)
class Outline:
    """Points at a mean distance of about 1, as x + iy, and the size of the hole in the middle (0: none)."""

    points: npt.NDArray[np.complex128]
    hole: float


def outline(random: np.random.Generator, number: int, likeness: float) -> Outline:
    """Of another family than its neighbours by number; with likeness 1 every outline is a circle."""
    radius = OUTLINE_FAMILIES[number % len(OUTLINE_FAMILIES)](random)
    radius = (1 - likeness) * radius / radius.mean() + likeness
    stretch = random.uniform(1.0, 2.2) ** (1 - likeness)
    points = radius * (np.cos(ANGLES) * stretch**0.5 + 1j * np.sin(ANGLES) / stretch**0.5)
    return Outline(points, HOLES[int(random.integers(len(HOLES)))])


def placed(outline: Outline, x: float, y: float, size: float, turn: float) -> list[float]:
    """The outline at a place of the picture, as Pillow draws it: x and y by turns."""
    points = outline.points * cmath.rect(size, turn) + complex(x, y)
    flat: list[float] = points.view(np.float64).tolist()
    return flat


def _polygon(random: np.random.Generator) -> Points:
    sides = int(random.integers(3, 8))
    within = ANGLES % (2 * np.pi / sides) - np.pi / sides
    radius: Points = np.cos(np.pi / sides) / np.cos(within)
    return radius


def _star(random: np.random.Generator) -> Points:
    tips = int(random.integers(3, 10))
    zigzag = np.abs(ANGLES * tips / np.pi % 2 - 1)
    inner = random.uniform(0.3, 0.65)
    radius: Points = inner + (1 - inner) * zigzag
    return radius


def _flower(random: np.random.Generator) -> Points:
    petals = int(random.integers(2, 9))
    radius: Points = 1 + random.uniform(0.15, 0.5) * np.cos(petals * ANGLES)
    return radius


def _gear(random: np.random.Generator) -> Points:
    teeth = int(random.integers(4, 13))
    radius: Points = 1 + random.uniform(0.12, 0.3) * np.sign(np.cos(teeth * ANGLES))
    return radius


def _free(random: np.random.Generator) -> Points:
    waves = np.arange(1, 6)
    sizes, turns = random.uniform(0.1, 0.5, 5) / waves**0.5, random.uniform(0, 2 * np.pi, 5)
    radius = 1 + (sizes[:, None] * np.cos(waves[:, None] * ANGLES + turns[:, None])).sum(axis=0)
    at_least: Points = np.maximum(radius, 0.15)
    return at_least


OUTLINE_FAMILIES = (_polygon, _star, _flower, _gear, _free)


Field = npt.NDArray[np.float64]
TILE_SIDE = 256
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
    family, number = TEXTURE_FAMILIES[number % len(TEXTURE_FAMILIES)], number // len(TEXTURE_FAMILIES)
    return _standardized(_soft(family(random, number, periods)))


def mix_textures(own: Field, common: Field, likeness: float) -> Field:
    """The same tile with so much of a common one in it."""
    return _standardized((1 - likeness) * own + likeness * common)


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
    waves = []
    for wave in range(count):
        cycles, phase = periods * random.uniform(0.8, 1.25), random.uniform(0, 2 * np.pi)
        waves.append(waveform(_plane(cycles, first + spread * wave, phase)))
    together: Field = np.prod(waves, axis=0) if random.random() < 0.5 else np.sum(waves, axis=0)
    return together


def _cells(random: np.random.Generator, number: int, periods: float) -> Field:
    """The distance to the nearest of some points, or to the border between two: dots, stones, cracks."""
    count = round(periods**2)
    points = random.uniform(0, TILE_SIDE, (count, 2))
    places = np.arange(TILE_SIDE) + 0.5
    across, down = (_around(places[:, None] - points[None, :, axis]) for axis in (0, 1))
    near = np.full((TILE_SIDE, TILE_SIDE), np.inf)
    second = near.copy()
    for point in range(count):
        distance = down[:, None, point] ** 2 + across[None, :, point] ** 2
        second = np.minimum(second, np.maximum(near, distance))
        near = np.minimum(near, distance)
    rim = np.sqrt(second) - np.sqrt(near)
    scale = TILE_SIDE / np.sqrt(count)
    shapes: tuple[Field, ...] = (
        np.sqrt(near),
        np.tanh(8 * rim / scale),
        np.tanh(12 * (np.sqrt(near) / scale - 0.28)),
    )
    return shapes[number % 3]


def _noise_texture(random: np.random.Generator, number: int, periods: float) -> Field:
    """Noise of one wavelength, along one direction or all: marble, wood, spots, fur."""
    width, direction = random.uniform(0.12, 0.45), random.uniform(0, np.pi)
    narrow, sharp = (0.0, 6.0, 2.0)[number % 3], (0.0, 4.0, 1.2)[number // 3 % 3]
    cycles = np.fft.fftfreq(TILE_SIDE, 1 / TILE_SIDE)
    down, across = cycles[:, None], cycles[None, :]
    radius, angle = np.hypot(down, across), np.arctan2(down, across)
    passed = np.exp(
        -(((radius - periods) / (width * periods)) ** 2) + narrow * np.cos(2 * (angle - direction))
    )
    white = np.fft.fft2(random.random((TILE_SIDE, TILE_SIDE)) - 0.5)
    field = _standardized(np.fft.ifft2(white * passed).real)
    return np.tanh(sharp * field) if sharp else field


TEXTURE_FAMILIES = (_waves, _cells, _noise_texture)
WAVEFORMS: tuple[Callable[[Field], Field], ...] = (
    np.sin,
    lambda phase: np.tanh(6 * np.sin(phase)),
    lambda phase: np.abs(np.sin(phase / 2)),
    lambda phase: phase / (2 * np.pi) % 1.0,
)


def _plane(cycles: float, direction: float, phase: float) -> Field:
    """The phase of a plane wave, bent to whole periods so that the tile continues over its edges."""
    turns = np.arange(TILE_SIDE) * (2 * np.pi / TILE_SIDE)
    down, across = round(cycles * np.sin(direction)), round(cycles * np.cos(direction))
    field: Field = down * turns[:, None] + across * turns[None, :] + phase
    # An even number of periods: one of the waveforms has half the frequency.
    return 2 * np.pi + field if down or across else field + turns[None, :]


def _around(distance: Field) -> Field:
    """The shorter way, over the tile's edge where that is nearer."""
    shorter: Field = np.minimum(np.abs(distance), TILE_SIDE - np.abs(distance))
    return shorter


def _soft(field: Field) -> Field:
    """Without what is finer than a pixel of the picture, which would show as steps."""
    cycles = np.fft.fftfreq(TILE_SIDE)
    passed = np.exp(-2 * (np.pi * SOFTNESS) ** 2 * (cycles[:, None] ** 2 + cycles[None, :] ** 2))
    return np.fft.ifft2(np.fft.fft2(field) * passed).real


def _standardized(field: Field) -> Field:
    centred: Field = field - field.mean()
    scaled: Field = centred / max(float(centred.std()), 1e-9)
    return scaled


Bytes = npt.NDArray[np.uint8]
Signed = npt.NDArray[np.int8]
FIELD_SIDE = 1024
SHADE_DEVIATION, SHADE_LENGTH = 9.0, 160.0
COARSE_LENGTH = 8.0
GRAIN_DEVIATION = 1.5
# Sums of three fields stay within a signed byte.
MOST_SHADE, MOST_COARSE, MOST_GRAIN = 24, 60, 6


@dataclass(frozen=True)
class NoiseFields:
    """Fields that continue over their edges; a picture shows a window of each."""

    shade: Signed
    coarse: Signed
    grain: Signed


def noise_fields(random: np.random.Generator, noise: float) -> NoiseFields:
    """`noise`: the deviation of the coarse noise in grey levels."""
    return NoiseFields(
        shade=_smooth(random, SHADE_LENGTH, SHADE_DEVIATION, MOST_SHADE),
        coarse=_smooth(random, COARSE_LENGTH, noise, MOST_COARSE),
        grain=_smooth(random, 0.0, GRAIN_DEVIATION, MOST_GRAIN),
    )


def add_noise(random: np.random.Generator, luma: Bytes, fields: NoiseFields) -> Bytes:
    over = _window(random, fields.grain, luma.shape) + _window(random, fields.shade, luma.shape)
    over += _window(random, fields.coarse, luma.shape)
    total = np.add(luma, over, dtype=np.int16)
    clipped: Bytes = np.clip(total, 0, 255, out=total).astype(np.uint8)
    return clipped


def _window(random: np.random.Generator, field: Signed, shape: tuple[int, ...]) -> Signed:
    height, width = shape
    if height <= FIELD_SIDE and width <= FIELD_SIDE:
        top, left = (int(random.integers(FIELD_SIDE - side + 1)) for side in (height, width))
        return field[top : top + height, left : left + width]
    top, left = random.integers(FIELD_SIDE, size=2).tolist()
    return field[np.ix_((top + np.arange(height)) % FIELD_SIDE, (left + np.arange(width)) % FIELD_SIDE)]


def _smooth(random: np.random.Generator, length: float, deviation: float, most: int) -> Signed:
    """Noise with nothing shorter than this many pixels in it."""
    cycles = np.fft.fftfreq(FIELD_SIDE)
    passed = np.exp(-((cycles[:, None] ** 2 + cycles[None, : FIELD_SIDE // 2 + 1] ** 2) * length**2))
    field = np.fft.irfft2(
        np.fft.rfft2(random.random((FIELD_SIDE, FIELD_SIDE)) - 0.5) * passed, s=(FIELD_SIDE, FIELD_SIDE)
    )
    scaled = (field - field.mean()) * (deviation / field.std())
    clipped: Signed = np.clip(np.rint(scaled), -most, most).astype(np.int8)
    return clipped
