"""Fused attention: QKᵀ and PV forward, and the four products of their gradients backward.

That a fused kernel computes QKᵀ again in its backward pass is not counted, as nowhere in this package. Under
a causal mask position t attends to t + 1 keys.
"""

from __future__ import annotations

from trainmark.explain.profile.model import Operands
from trainmark.explain.work.model import (
    Cost,
    Formula,
    added,
    element_bytes,
    elements,
    flag,
    tensor,
    tensor_bytes,
    times,
)

PREFIX = "aten::_scaled_dot_product_"
# Where operators have the flag of a causal mask among their inputs.
FORWARD_CAUSAL = {
    PREFIX + "flash_attention": 4,
    PREFIX + "flash_attention_for_cpu": 4,
    PREFIX + "efficient_attention": 6,
    PREFIX + "cudnn_attention": 6,
}
BACKWARD_CAUSAL = {
    PREFIX + "flash_attention_backward": 11,
    PREFIX + "flash_attention_for_cpu_backward": 7,
    PREFIX + "efficient_attention_backward": 11,
    PREFIX + "cudnn_attention_backward": 14,
}
WRAPPERS = {"aten::scaled_dot_product_attention": 5}


def forward(causal: int) -> Formula:
    def cost(operands: Operands) -> Cost | None:
        return _cost(operands, 0, flag(operands, causal), 1)

    return cost


def backward(causal: int) -> Formula:
    """Behind the gradient of the result come query, key and value."""

    def cost(operands: Operands) -> Cost | None:
        return _cost(operands, 1, flag(operands, causal), 2)

    return cost


def _cost(operands: Operands, first: int, causal: bool | None, passes: int) -> Cost | None:
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
        return Cost(None, moved)
    pairs = causal_pairs(query[2], key[2]) if causal else query[2] * key[2]
    return Cost(passes * 2 * query[0] * query[1] * pairs * (query[3] + values[3]), moved)


def causal_pairs(queries: int, keys: int) -> int:
    """Return how many pairs a causal mask leaves, both sequences aligned at their starts."""
    square = min(queries, keys)
    return square * (square + 1) // 2 + max(0, queries - keys) * keys


ATTENTION: dict[str, Formula] = {
    **{name: forward(causal) for name, causal in FORWARD_CAUSAL.items()},
    **{name: backward(causal) for name, causal in BACKWARD_CAUSAL.items()},
}
ATTENTION_WRAPPERS: dict[str, Formula] = {name: forward(causal) for name, causal in WRAPPERS.items()}
