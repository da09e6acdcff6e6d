"""Every tensor of the model under its canonical name, and the weights that all frameworks can start from.

Names are `stem`, `blocks.0` to `blocks.15` and `classifier`; layouts are: a convolution as (outputs, inputs,
rows, columns), the classifier as (classes, features).
"""

from __future__ import annotations

from typing import Dict, Iterator, List, NamedTuple, Tuple

import numpy as np

from trainmark.workloads.resnet50.shared import recipe

SEED = 2015  # the year of the paper


class Layer(NamedTuple):
    """`kind` is `conv`, `norm` or `linear`; `shape` is that of its weight, for a batch norm its channels."""

    name: str
    kind: str
    shape: Tuple[int, ...]


def layers() -> Iterator[Layer]:
    """All layers with weights, in the order of the forward pass; a shortcut comes last of its block."""
    yield Layer("stem.conv", "conv", (64, 3, 7, 7))
    yield Layer("stem.norm", "norm", (64,))
    channels, index = 64, 0
    for blocks, width in recipe.STAGES:
        outputs = width * recipe.EXPANSION
        for block in range(blocks):
            name = "blocks.{}".format(index)
            kernels = ((width, channels, 1, 1), (width, width, 3, 3), (outputs, width, 1, 1))
            for number, kernel in enumerate(kernels, 1):
                yield Layer("{}.conv{}".format(name, number), "conv", kernel)
                yield Layer("{}.norm{}".format(name, number), "norm", kernel[:1])
            if block == 0:
                yield Layer(name + ".shortcut.conv", "conv", (outputs, channels, 1, 1))
                yield Layer(name + ".shortcut.norm", "norm", (outputs,))
            channels, index = outputs, index + 1
    yield Layer("classifier", "linear", (recipe.CLASSES, channels))


PARTS = {"conv": ("weight",), "norm": ("scale", "bias", "mean", "variance"), "linear": ("weight", "bias")}


def names(layer: Layer) -> List[str]:
    """The canonical names of a layer's tensors, in the order of PARTS."""
    return ["{}.{}".format(layer.name, part) for part in PARTS[layer.kind]]


def shapes() -> Dict[str, Tuple[int, ...]]:
    """Of all trained tensors and running statistics, by canonical name."""
    return {
        name: layer.shape if name.endswith("weight") else layer.shape[:1]
        for layer in layers()
        for name in names(layer)
    }


def is_statistic(name: str) -> bool:
    return name.endswith(("mean", "variance"))


def is_decayed(name: str) -> bool:
    """Weight decay is for all but batch norm."""
    return not is_statistic(name) and "norm" not in name


def initial() -> Dict[str, np.ndarray]:
    """Weights for comparing frameworks, not for training: the same everywhere, and far from every kink.

    numpy keeps the streams of RandomState as they are for ever (NEP 19). With ordinary weights some of the
    ten million ReLUs stand so near zero that float32 puts them on the other side, and a gradient is then off
    by a hundredth; five steps later nothing can be compared. Here the batch norms' biases hold three channels
    in four well above zero and one well below. Channel 0 is left free, so that every bias has a gradient.
    """
    random = np.random.RandomState(SEED)
    values = {}
    for name, shape in shapes().items():
        # Small features make small steps: the loss falls as it would in real training.
        size = 0.02 if _feeds_classifier(name) else 1.0
        if name.endswith("weight"):
            gain = 1.0 if name.startswith("classifier") else 2.0
            value = random.standard_normal(shape) * np.sqrt(gain / np.prod(shape[1:]))
        elif name.endswith("variance"):
            value = random.uniform(0.5, 1.5, shape)
        elif name.endswith("scale"):
            value = size * random.uniform(0.5, 1.5, shape)
        elif name.endswith("bias") and "norm" in name:
            value = size * (_signs(shape[0]) * random.uniform(8.0, 10.0, shape) + _noise(random, shape))
        else:
            value = _noise(random, shape)
        values[name] = value.astype(np.float32)
    return values


def _feeds_classifier(name: str) -> bool:
    last_stage = name.startswith(("blocks.13.", "blocks.14.", "blocks.15."))
    return last_stage and ("norm3" in name or "shortcut.norm" in name)


def _signs(channels: int) -> np.ndarray:
    side = np.where(np.arange(channels) % 4 == 3, -1.0, 1.0)
    side[0] = 0.0
    return side


def _noise(random: np.random.RandomState, shape: Tuple[int, ...]) -> np.ndarray:
    return random.standard_normal(shape) * 0.1


def batch(rank: int, images: int, side: int) -> Tuple[np.ndarray, np.ndarray]:
    """The images (as images, channels, rows, columns) and labels of one rank."""
    random = np.random.RandomState(SEED + 1 + rank)
    pixels = random.standard_normal((images, 3, side, side)).astype(np.float32)
    return pixels, random.randint(0, recipe.CLASSES, images).astype(np.int64)
