"""FLOP and bytes of an operator from its operands: matrix products and fused attention.

A multiply-add counts as two FLOP, each operand is read and each result written once, and what a fused kernel
computes again in its backward pass is not counted. Under a causal mask position t attends to t + 1 keys.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from math import prod
from typing import NamedTuple

from trainmark.explain.profile import Operands


class OperatorCost(NamedTuple):
    """Of one operator; a multiply-add counts as two FLOP, which are counted for products alone.

    `bytes` has each operand read and each result written once, None where an element's size is unknown.
    """

    flop: int | None
    bytes: int | None


@dataclass(frozen=True)
class Work:
    """Of one class in one step; None where less than nearly all of its time is accounted for.

    `covered` is the share of the class's device time whose operators have a count.
    """

    flop: float | None = None
    bytes: float | None = None
    covered: float = 1.0


Formula = Callable[[Operands], OperatorCost | None]

# By the names that Kineto gives types, and by those of JAX and numpy.
ELEMENT_BYTES = {
    **dict.fromkeys(("double", "long", "long int", "int64", "float64", "f64", "s64", "unsigned long"), 8),
    **dict.fromkeys(("c10::complex<float>", "complex64", "c64"), 8),
    **dict.fromkeys(("float", "int", "float32", "int32", "f32", "s32", "u32", "unsigned int"), 4),
    **dict.fromkeys(("c10::Half", "c10::BFloat16", "short", "short int", "float16", "bfloat16"), 2),
    **dict.fromkeys(("f16", "bf16", "int16", "unsigned short"), 2),
    **dict.fromkeys(("bool", "unsigned char", "signed char", "char", "int8", "uint8", "u8", "s8", "pred"), 1),
    **dict.fromkeys(("c10::Float8_e4m3fn", "c10::Float8_e5m2", "c10::Float8_e4m3fnuz", "f8e4m3fn"), 1),
}


def elements(shape: tuple[int, ...]) -> int:
    return prod(shape)


def element_bytes(operands: Operands, index: int) -> int | None:
    return ELEMENT_BYTES.get(operands.types[index]) if index < len(operands.types) else None


def tensor(operands: Operands, index: int) -> tuple[int, ...] | None:
    """Return the shape of an operand, None where there is no tensor."""
    return operands.shapes[index] if index < len(operands.shapes) else None


def tensor_bytes(operands: Operands, index: int) -> int | None:
    """Return the bytes of an operand: 0 where there is no tensor, None where its type is unknown."""
    shape = tensor(operands, index)
    if shape is None:
        return 0
    size = element_bytes(operands, index)
    return None if size is None else elements(shape) * size


def added(*sizes: int | None) -> int | None:
    """Return the sum, None where a part is unknown."""
    known = [size for size in sizes if size is not None]
    return sum(known) if len(known) == len(sizes) else None


def times(count: int, size: int | None) -> int | None:
    return None if size is None else count * size


def value(operands: Operands, index: int) -> str:
    """Return the text of an input that is no tensor, "" where it was not recorded."""
    return operands.values[index] if index < len(operands.values) else ""


def numbers(operands: Operands, index: int) -> tuple[int, ...] | None:
    """Return "[2, 2]" as numbers, None where there is no list of whole numbers."""
    text = value(operands, index)
    parts = [part.strip() for part in text.removeprefix("[").removesuffix("]").split(",")]
    if not text.startswith("[") or not all(part.lstrip("-").isdecimal() for part in parts):
        return None
    return tuple(map(int, parts))


def flag(operands: Operands, index: int) -> bool | None:
    """Return True or False, None where it was not recorded."""
    return {"True": True, "False": False, "true": True, "false": False}.get(value(operands, index))


def matrix_product(first: int) -> Formula:
    """Return the formula of mm or bmm: operands at `first` and behind it, an addend before them."""

    def cost(operands: Operands) -> OperatorCost | None:
        a, b = tensor(operands, first), tensor(operands, first + 1)
        if a is None or b is None or len(a) not in (2, 3) or len(b) != len(a) or a[-1] != b[-2]:
            return None
        result = elements(a[:-1]) * b[-1]
        read = [tensor_bytes(operands, index) for index in range(first + 2)]
        return OperatorCost(2 * result * a[-1], added(*read, times(result, element_bytes(operands, first))))

    return cost


def linear(operands: Operands) -> OperatorCost | None:
    """Of x·Wᵀ + b with x of any rank and W as (outputs, inputs)."""
    x, weight = tensor(operands, 0), tensor(operands, 1)
    if not x or weight is None or len(weight) != 2 or x[-1] != weight[1]:
        return None
    result = elements(x[:-1]) * weight[0]
    read = [tensor_bytes(operands, index) for index in range(min(3, len(operands.shapes)))]
    return OperatorCost(2 * result * x[-1], added(*read, times(result, element_bytes(operands, 0))))


def matrix_vector(operands: Operands) -> OperatorCost | None:
    matrix, vector = tensor(operands, 0), tensor(operands, 1)
    if matrix is None or vector is None or len(matrix) != 2 or vector != matrix[1:]:
        return None
    read = added(tensor_bytes(operands, 0), tensor_bytes(operands, 1))
    return OperatorCost(2 * elements(matrix), added(read, times(matrix[0], element_bytes(operands, 0))))


def template(operands: Operands) -> OperatorCost | None:
    """Of Inductor's own product: among its arguments are both operands and, last of the tensors, the result.

    None where the inner extent cannot be told from the shapes.
    """
    tensors = [shape for shape in operands.shapes if shape is not None and len(shape) in (2, 3)]
    if len(tensors) < 3:
        return None
    result = tensors[-1]
    for a, b in pairwise(tensors[:-1]):
        if a[-1] == b[-2] and a[-2] == result[-2] and b[-1] == result[-1]:
            moved = added(*(tensor_bytes(operands, index) for index in range(len(operands.shapes))))
            return OperatorCost(2 * elements(result) * a[-1], moved)
    return None


PRODUCTS: dict[str, Formula] = {
    **dict.fromkeys(("aten::mm", "aten::bmm", "aten::_scaled_mm", "aten::_int_mm"), matrix_product(0)),
    **dict.fromkeys(
        ("aten::addmm", "aten::addmm_", "aten::baddbmm", "aten::baddbmm_", "aten::_addmm_activation"),
        matrix_product(1),
    ),
    "aten::mkldnn_linear": linear,
    "mkldnn::_linear_pointwise": linear,
    "aten::mv": matrix_vector,
}
# Operators that call one of the above where they do not launch a kernel of their own.
PRODUCT_WRAPPERS: dict[str, Formula] = {"aten::linear": linear, "aten::matmul": matrix_product(0)}


ATTENTION_PREFIX = "aten::_scaled_dot_product_"
# Where operators have the flag of a causal mask among their inputs.
FORWARD_CAUSAL = {
    ATTENTION_PREFIX + "flash_attention": 4,
    ATTENTION_PREFIX + "flash_attention_for_cpu": 4,
    ATTENTION_PREFIX + "efficient_attention": 6,
    ATTENTION_PREFIX + "cudnn_attention": 6,
}
BACKWARD_CAUSAL = {
    ATTENTION_PREFIX + "flash_attention_backward": 11,
    ATTENTION_PREFIX + "flash_attention_for_cpu_backward": 7,
    ATTENTION_PREFIX + "efficient_attention_backward": 11,
    ATTENTION_PREFIX + "cudnn_attention_backward": 14,
}
CAUSAL_WRAPPERS = {"aten::scaled_dot_product_attention": 5}


def attention_forward(causal: int) -> Formula:
    def cost(operands: Operands) -> OperatorCost | None:
        return _attention_cost(operands, 0, flag(operands, causal), 1)

    return cost


def attention_backward(causal: int) -> Formula:
    """Behind the gradient of the result come query, key and value."""

    def cost(operands: Operands) -> OperatorCost | None:
        return _attention_cost(operands, 1, flag(operands, causal), 2)

    return cost


def _attention_cost(operands: Operands, first: int, causal: bool | None, passes: int) -> OperatorCost | None:
    """Return the cost of operands (batch, heads, length, width); no FLOP where the mask is not known."""
    query, key, values = (tensor(operands, first + index) for index in range(3))
    if query is None or key is None or values is None or not len(query) == len(key) == len(values) == 4:
        return None
    result = elements(query[:3]) * values[3]
    of_operands = added(*(tensor_bytes(operands, first + index) for index in range(3)))
    of_result = times(result, element_bytes(operands, first))
    moved = added(of_operands, of_result)
    if passes == 2:  # reads operands, result and its gradient, and writes three gradients
        moved = added(moved, of_result, of_operands)
    if causal is None:
        return OperatorCost(None, moved)
    pairs = causal_pairs(query[2], key[2]) if causal else query[2] * key[2]
    return OperatorCost(passes * 2 * query[0] * query[1] * pairs * (query[3] + values[3]), moved)


def causal_pairs(queries: int, keys: int) -> int:
    """Return how many pairs a causal mask leaves, both sequences aligned at their starts."""
    square = min(queries, keys)
    return square * (square + 1) // 2 + max(0, queries - keys) * keys


ATTENTION: dict[str, Formula] = {
    **{name: attention_forward(causal) for name, causal in FORWARD_CAUSAL.items()},
    **{name: attention_backward(causal) for name, causal in BACKWARD_CAUSAL.items()},
}
ATTENTION_WRAPPERS: dict[str, Formula] = {
    name: attention_forward(causal) for name, causal in CAUSAL_WRAPPERS.items()
}
