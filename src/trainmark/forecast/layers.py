"""The layers of the models that are forecast: parameters and work, counted from the architecture."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple


class Layer(NamedTuple):
    """Trainable parameters, and multiply-adds of the forward pass for one sample."""

    parameters: int
    work: int


def resnet50(image_size: int = 224) -> Iterator[Layer]:
    """ResNet-50 v1.5 from input to output, each convolution with its batch norm: 25,557,032 parameters."""
    side = -(-image_size // 2)
    yield _convolution(3, 64, 7, side)
    side, channels = -(-side // 2), 64
    for stage, (blocks, width) in enumerate(((3, 64), (4, 128), (6, 256), (3, 512))):
        for block in range(blocks):
            yield _convolution(channels, width, 1, side)
            side = -(-side // 2) if stage and not block else side
            yield _convolution(width, width, 3, side)
            yield _convolution(width, 4 * width, 1, side)
            if not block:
                yield _convolution(channels, 4 * width, 1, side)
            channels = 4 * width
    yield Layer(channels * 1000 + 1000, channels * 1000)


def bert_base(sequence: int = 128) -> Iterator[Layer]:
    """BERT-base with its two heads of pre-training; the tied embedding comes last of all gradients."""
    hidden, inner, words = 768, 3072, 30522
    norm = 2 * hidden
    yield Layer((words + 512 + 2) * hidden + norm, 0)
    for _ in range(12):
        attention = 4 * hidden * hidden * sequence + 2 * hidden * sequence * sequence
        yield Layer(4 * (hidden * hidden + hidden) + norm, attention)
        yield Layer(2 * hidden * inner + inner + hidden + norm, 2 * hidden * inner * sequence)
    yield Layer(hidden * hidden + hidden, hidden * hidden)
    predicted = sequence * 20 // 128  # masked words of a sequence, as the original pre-training has them
    yield Layer(hidden * hidden + hidden + norm + words, (hidden + words) * hidden * predicted)
    yield Layer(2 * hidden + 2, 2 * hidden)


def even(parameters: int, layers: int = 50) -> Iterator[Layer]:
    """A model of which only the size is known."""
    for place in range(layers):
        yield Layer(parameters * (place + 1) // layers - parameters * place // layers, 1)


MODELS: dict[str, Callable[[], Iterator[Layer]]] = {"resnet50": resnet50, "bert-base": bert_base}


def _convolution(inputs: int, outputs: int, kernel: int, side: int) -> Layer:
    weights = inputs * outputs * kernel * kernel
    return Layer(weights + 2 * outputs, weights * side * side)
