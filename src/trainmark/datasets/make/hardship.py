"""What a difficulty means: how alike classes are, how much lies over and under them, how faint they are."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Hardship:
    """Grey levels, counts, and radii as shares of the shorter side; pairs are the least and the most."""

    likeness: float  # how much of an outline and of a texture all classes have in common
    contrast: float  # of the textures
    ground: float  # contrast of the foreign texture behind, as a share of the class's own
    noise: float  # deviation of the coarse noise
    clutter: int  # foreign outlines laid over the picture
    objects: tuple[int, int]  # outlines of the class
    object_size: tuple[float, float]
    turn: float  # how far outlines and textures are turned to either side, in half turns


def hardship(difficulty: float) -> Hardship:
    def between(easy: float, hard: float) -> float:
        return easy + (hard - easy) * difficulty

    return Hardship(
        likeness=between(0.0, 0.35),
        contrast=between(44.0, 33.0),
        ground=between(0.15, 0.7),
        noise=between(3.0, 12.0),
        clutter=round(between(0, 4)),
        objects=(3, 5),
        object_size=(between(0.28, 0.22), between(0.44, 0.4)),
        turn=between(0.1, 0.4),
    )
