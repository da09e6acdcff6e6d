"""Who appears in the pictures of a plan: each class, and what all of them share; drawn once a process."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from trainmark.datasets.make.hardship import hardship
from trainmark.datasets.make.outlines import outline
from trainmark.datasets.make.plan import TRAIN, VAL, Plan
from trainmark.datasets.make.scene import Kind, Props, jpeg
from trainmark.datasets.make.textures import Field, levels, mixed, texture
from trainmark.datasets.make.weather import weather

# The first word of every generator after the seed: no two are the same.
COMMON, SHARED, CLASS, PICTURE = range(4)
SPLIT_NUMBER = {TRAIN: 0, VAL: 1}
FOREIGN = 16
# The deviation of a texture within a byte: little of it is cut off.
DEVIATION = 45.0


def picture(plan: Plan, split: str, label: int, number: int) -> bytes:
    """The JPEG of the `number`-th picture of a class; it does not depend on how many there are."""
    random = np.random.default_rng((plan.seed, PICTURE, SPLIT_NUMBER[split], label, number))
    kind, props = _kind(plan.seed, plan.difficulty, label), _props(plan.seed, plan.difficulty)
    return jpeg(random, kind, props, hardship(plan.difficulty), (plan.width, plan.height))


@lru_cache(maxsize=128)
def _kind(seed: int, difficulty: float, label: int) -> Kind:
    likeness = hardship(difficulty).likeness
    random = np.random.default_rng((seed, CLASS, label))
    return Kind(
        outline(random, label, likeness),
        levels(mixed(texture(random, label), _common(seed), likeness), DEVIATION),
    )


@lru_cache(maxsize=1)
def _props(seed: int, difficulty: float) -> Props:
    random = np.random.default_rng((seed, SHARED))
    return Props(
        outlines=tuple(outline(random, number, 0.0) for number in range(FOREIGN)),
        tiles=tuple(levels(texture(random, number), DEVIATION) for number in range(FOREIGN)),
        weather=weather(random, hardship(difficulty).noise),
    )


@lru_cache(maxsize=1)
def _common(seed: int) -> Field:
    return texture(np.random.default_rng((seed, COMMON)), 0)
