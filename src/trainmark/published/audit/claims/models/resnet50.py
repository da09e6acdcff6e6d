"""Whether a table is of ResNet-50 trained on ImageNet: then operations and images of an epoch are known."""

from __future__ import annotations

import re

from trainmark.published.audit.claims.grid import Grid, Row

RESNET50 = re.compile(r"resnet[-_ ]?v?(?:1\.5)?[-_ ]?50|\brn50\b", re.I)
ANOTHER_MODEL = re.compile(
    r"bert|gpt|vgg|inception|mobilenet|alexnet|resnet[-_ ]?(?:18|34|101|152)|resnext|efficientnet|densenet"
    r"|\bssd\b|rcnn|retinanet|yolo|face|transformer|\bvit\b|swin|unet|segment|detect|\btsm\b|\by1\b|video",
    re.I,
)
IMAGENET_IMAGES = 1_281_167
# Forward and backward pass of ResNet-50 v1.5 over one image of 224 × 224: 3 × 2 × 4.09 G multiply-adds.
FLOP_AN_IMAGE = 24.5e9


def is_of_resnet50(grid: Grid) -> bool:
    """Whether the headings, the sentences above or the heads name ResNet-50 and no other model."""
    words = " ".join((grid.words, *(column.head for column in grid.columns)))
    return bool(RESNET50.search(words)) and not ANOTHER_MODEL.search(words)


def names_another_model(row: Row) -> bool:
    return bool(ANOTHER_MODEL.search(" ".join(cell.text for cell in row.cells)))
