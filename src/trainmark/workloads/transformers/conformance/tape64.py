"""Reverse-mode differentiation: layers are written down as they are applied, then walked backward."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from trainmark.workloads.transformers.conformance.layers64 import Array, Backward

Layer = Callable[..., "tuple[Array, Backward]"]


class Value:
    """An array on the tape, and the gradient of the loss by it once `Tape.backward` has run."""

    def __init__(self, array: Array) -> None:
        self.array = array
        self.gradient = np.zeros_like(array)


class Tape:
    """The layers of one forward pass, in order."""

    def __init__(self) -> None:
        self._applied: list[tuple[Value, tuple[Value, ...], Backward]] = []

    def __call__(self, layer: Layer, *inputs: Value, **constants: Any) -> Value:
        """Apply a layer of layers64 to values; what it takes by name is not differentiated."""
        array, backward = layer(*(value.array for value in inputs), **constants)
        output = Value(array)
        self._applied.append((output, inputs, backward))
        return output

    def backward(self, loss: Value) -> None:
        """Give every value that the loss depends on its gradient."""
        loss.gradient = np.ones_like(loss.array)
        for output, inputs, backward in reversed(self._applied):
            for value, gradient in zip(inputs, backward(output.gradient), strict=True):
                value.gradient = value.gradient + gradient
