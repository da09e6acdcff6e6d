"""Random images on the host, alike for every framework: numpy and the standard library, Python 3.7+."""

from __future__ import annotations

from typing import List, Tuple

import numpy as np

from trainmark.workloads.resnet50.shared import recipe

BATCHES = 4  # that a host loader hands out in turn


def batches(opt, count: int) -> List[Tuple[np.ndarray, np.ndarray]]:
    """Images as (images, 3, rows, columns) and labels; other ones on each rank."""
    random = np.random.default_rng([opt.seed, opt.rank])
    shape = (opt.batch, 3, opt.image_size, opt.image_size)
    return [
        (random.standard_normal(shape, np.float32), random.integers(0, recipe.CLASSES, opt.batch))
        for _ in range(count)
    ]
