"""The recipe every framework trains by: NVIDIA's ResNet-50 v1.5 settings, as the published reports use them.

Runs inside every framework's interpreter: standard library only, Python 3.7+.
"""

from __future__ import annotations

import math
from typing import Iterator, Tuple

CLASSES = 1000
PARAMETERS = 25557032
STAGES = ((3, 64), (4, 128), (6, 256), (3, 512))  # blocks, width of the 3x3 convolution
EXPANSION = 4

# Initial weights are normal with variance 2/fan-in for a convolution (He et al. 2015) and 1/fan-in for the
# classifier; batch norm starts as the identity, the classifier's bias at zero.
MOMENTUM = 0.875
WEIGHT_DECAY = 3.0517578125e-05  # 1/32768; never on batch norm
LABEL_SMOOTHING = 0.1
BATCH_NORM_EPSILON = 1e-5
BATCH_NORM_MOMENTUM = 0.1  # share of the new batch in the running statistics

BASE_RATE = 0.256
BASE_BATCH = 256
WARMUP_EPOCHS = 8
EPOCHS = 90
TRAINING_IMAGES = 1281167  # ILSVRC2012


def learning_rate(step: int, global_batch: int, training_images: int = TRAINING_IMAGES) -> float:
    """Rises linearly for eight epochs, then follows a cosine to zero; scaled by the global batch."""
    peak = BASE_RATE * global_batch / BASE_BATCH
    epoch = (step + 1) * global_batch / training_images  # the first step already moves
    if epoch < WARMUP_EPOCHS:
        return peak * epoch / WARMUP_EPOCHS
    progress = min(1.0, (epoch - WARMUP_EPOCHS) / (EPOCHS - WARMUP_EPOCHS))
    return peak * (1 + math.cos(math.pi * progress)) / 2


def convolutions(image_size: int) -> Iterator[Tuple[int, int, int, int]]:
    """Every convolution as (inputs, outputs, kernel, output side), then the classifier as a 1x1 on side 1."""
    side = _halved(image_size)
    yield 3, 64, 7, side
    side = _halved(side)
    channels = 64
    for stage, (blocks, width) in enumerate(STAGES):
        for block in range(blocks):
            before = side
            if block == 0 and stage > 0:
                side = _halved(side)
            yield channels, width, 1, before  # v1.5: the stride is in the 3x3, so this one runs at full size
            yield width, width, 3, side
            yield width, width * EXPANSION, 1, side
            if block == 0:
                yield channels, width * EXPANSION, 1, side
            channels = width * EXPANSION
    yield channels, CLASSES, 1, 1


def flops_per_image(image_size: int) -> int:
    """Forward and backward, a multiply-add as two: 24.5 GFLOP at 224. Backward costs twice the forward."""
    forward = sum(2 * i * o * k * k * side * side for i, o, k, side in convolutions(image_size))
    return 3 * forward


def _halved(side: int) -> int:
    return (side + 1) // 2
