"""Convolutions, forward and backward, of any rank, grouped and transposed.

The size of a result follows from stride, padding and dilation, which newer profilers record; else it is that
of the gradient in the backward pass of a convolution with the same operands.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from trainmark.explain.operator_cost import (
    Formula,
    OperatorCost,
    added,
    element_bytes,
    elements,
    flag,
    numbers,
    tensor,
    tensor_bytes,
    times,
)
from trainmark.explain.profile import Operands

Shape = tuple[int, ...]
Signature = tuple[Shape, Shape]


class Places(NamedTuple):
    """Where an operator has its settings among its inputs; -1 where it has none."""

    stride: int
    padding: int
    dilation: int
    transposed: int = -1
    output_padding: int = -1
    always_transposed: bool = False


GENERAL = Places(3, 4, 5, 6, 7)
FORWARD = {
    "aten::cudnn_convolution": Places(3, 2, 4),
    "aten::cudnn_convolution_relu": Places(3, 4, 5),
    "aten::miopen_convolution": Places(4, 3, 5),
    "aten::miopen_depthwise_convolution": Places(4, 3, 5),
    "aten::mkldnn_convolution": Places(4, 3, 5),
    "mkldnn::_convolution_pointwise": Places(4, 3, 5),
    "aten::_slow_conv2d_forward": Places(4, 5, -1),
    "aten::_conv_depthwise2d": Places(4, 5, 6),
    "aten::conv_depthwise3d": Places(4, 5, 6),
    "aten::slow_conv_dilated2d": Places(4, 5, 6),
    "aten::slow_conv_dilated3d": Places(4, 5, 6),
    "aten::cudnn_convolution_transpose": Places(4, 2, 5, output_padding=3, always_transposed=True),
    "aten::slow_conv_transpose2d": Places(4, 5, 7, output_padding=6, always_transposed=True),
    "aten::slow_conv_transpose3d": Places(4, 5, 7, output_padding=6, always_transposed=True),
    "aten::miopen_convolution_transpose": Places(5, 3, 6, output_padding=4, always_transposed=True),
    "aten::slow_conv3d_forward": Places(4, 5, -1),
    "aten::convolution_overrideable": GENERAL,
}
WRAPPERS = {"aten::convolution": GENERAL, "aten::_convolution": GENERAL, "aten::conv2d": Places(3, 4, 5)}
BACKWARD = "aten::convolution_backward"
# Gradient of the result, input and weight come first; then the sizes of the bias, and from here the settings.
BACKWARD_TRANSPOSED, OUTPUT_MASK = 7, 10


def result_shape(operands: Operands, places: Places) -> Shape | None:
    """Return the shape of the result from the recorded settings, None where they were not recorded."""
    given, weight = tensor(operands, 0), tensor(operands, 1)
    stride, padding = numbers(operands, places.stride), numbers(operands, places.padding)
    if not given or not weight or len(weight) != len(given) or stride is None or padding is None:
        return None
    dilation = numbers(operands, places.dilation) if places.dilation >= 0 else None
    sides = len(given) - 2
    stride, padding, dilation = (_spread(setting, sides) for setting in (stride, padding, dilation or (1,)))
    kernel = [dilation[axis] * (weight[axis + 2] - 1) + 1 for axis in range(sides)]
    if _is_transposed(operands, places):
        extra = _spread(numbers(operands, places.output_padding) or (0,), sides)
        output = [
            (given[axis + 2] - 1) * stride[axis] - 2 * padding[axis] + kernel[axis] + extra[axis]
            for axis in range(sides)
        ]
        return None if min(output, default=1) < 1 else (given[0], -1, *output)
    output = [
        (given[axis + 2] + 2 * padding[axis] - kernel[axis]) // stride[axis] + 1 for axis in range(sides)
    ]
    return None if min(output, default=1) < 1 else (given[0], weight[0], *output)


def _is_transposed(operands: Operands, places: Places) -> bool:
    return places.always_transposed or (places.transposed >= 0 and bool(flag(operands, places.transposed)))


def _spread(values: tuple[int, ...], sides: int) -> tuple[int, ...]:
    return values * sides if len(values) == 1 else values


def forward(places: Places, results: Mapping[Signature, Shape]) -> Formula:
    """Return the formula of a forward operator; `results` are the shapes that backward passes showed."""

    def cost(operands: Operands) -> OperatorCost | None:
        given, weight = tensor(operands, 0), tensor(operands, 1)
        if not given or not weight or len(weight) != len(given):
            return None
        transposed = _is_transposed(operands, places)
        result = result_shape(operands, places) or results.get((given, weight))
        if result is None:
            return None
        if transposed:
            # Every element of the input meets a filter of all outputs; groups are not recorded in shapes.
            return OperatorCost(2 * elements(given) * elements(weight[1:]), None)
        moved = added(
            tensor_bytes(operands, 0),
            tensor_bytes(operands, 1),
            times(elements(result), element_bytes(operands, 0)),
        )
        return OperatorCost(2 * elements(result) * elements(weight[1:]), moved)

    return cost


def backward(operands: Operands) -> OperatorCost | None:
    """Of dgrad and wgrad; only one of them where the other's gradient was not asked for."""
    gradient, given, weight = (tensor(operands, index) for index in range(3))
    if not gradient or not given or not weight or len(weight) != len(given):
        return None
    mask = _output_mask(operands)
    transposed = bool(flag(operands, BACKWARD_TRANSPOSED))
    product = 2 * elements(given if transposed else gradient) * elements(weight[1:])
    of_gradient, of_input, of_weight = (tensor_bytes(operands, index) for index in range(3))
    # Each product reads two of the three and writes what has the shape of the third.
    moved = added(of_gradient, of_input, of_weight)
    count = sum(mask)
    return OperatorCost(count * product, times(count, moved))


def _output_mask(operands: Operands) -> tuple[bool, bool]:
    """Return whether gradients of input and weight were computed; both where it was not recorded."""
    text = operands.values[OUTPUT_MASK] if len(operands.values) > OUTPUT_MASK else ""
    parts = [part.strip().lower() for part in text.strip("[]").split(",")]
    if len(parts) != 3:
        return True, True
    return parts[0] != "false", parts[1] != "false"


def seen_results(backwards: Iterable[Operands]) -> dict[Signature, Shape]:
    """Return the results' shapes by the operands', from backward passes; none where two differ."""
    results: dict[Signature, Shape | None] = {}
    for operands in backwards:
        gradient, given, weight = (tensor(operands, index) for index in range(3))
        if gradient and given and weight:
            known = results.setdefault((given, weight), gradient)
            if known != gradient:
                results[given, weight] = None
    return {signature: shape for signature, shape in results.items() if shape is not None}
