"""Closed outlines around the origin, drawn from a generator: polygons, stars, flowers, gears, free forms."""

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
    radius = FAMILIES[number % len(FAMILIES)](random)
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


FAMILIES: tuple[Callable[[np.random.Generator], Points], ...] = (_polygon, _star, _flower, _gear, _free)
