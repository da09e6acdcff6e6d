"""Matrix products: ATen's operators and their operands."""

from __future__ import annotations

from itertools import pairwise

from trainmark.explain.profile.model import Operands
from trainmark.explain.work.model import (
    Cost,
    Formula,
    added,
    element_bytes,
    elements,
    tensor,
    tensor_bytes,
    times,
)


def matrix_product(first: int) -> Formula:
    """Return the formula of mm or bmm: operands at `first` and behind it, an addend before them."""

    def cost(operands: Operands) -> Cost | None:
        a, b = tensor(operands, first), tensor(operands, first + 1)
        if a is None or b is None or len(a) not in (2, 3) or len(b) != len(a) or a[-1] != b[-2]:
            return None
        result = elements(a[:-1]) * b[-1]
        read = [tensor_bytes(operands, index) for index in range(first + 2)]
        return Cost(2 * result * a[-1], added(*read, times(result, element_bytes(operands, first))))

    return cost


def linear(operands: Operands) -> Cost | None:
    """Of x·Wᵀ + b with x of any rank and W as (outputs, inputs)."""
    x, weight = tensor(operands, 0), tensor(operands, 1)
    if not x or weight is None or len(weight) != 2 or x[-1] != weight[1]:
        return None
    result = elements(x[:-1]) * weight[0]
    read = [tensor_bytes(operands, index) for index in range(min(3, len(operands.shapes)))]
    return Cost(2 * result * x[-1], added(*read, times(result, element_bytes(operands, 0))))


def matrix_vector(operands: Operands) -> Cost | None:
    matrix, vector = tensor(operands, 0), tensor(operands, 1)
    if matrix is None or vector is None or len(matrix) != 2 or vector != matrix[1:]:
        return None
    read = added(tensor_bytes(operands, 0), tensor_bytes(operands, 1))
    return Cost(2 * elements(matrix), added(read, times(matrix[0], element_bytes(operands, 0))))


def template(operands: Operands) -> Cost | None:
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
            return Cost(2 * elements(result) * a[-1], moved)
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
