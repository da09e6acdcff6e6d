"""Bytes of operators that compute next to nothing: elementwise, norms, reductions, copies, optimizers."""

from __future__ import annotations

from trainmark.explain.operator_cost import (
    Formula,
    OperatorCost,
    added,
    element_bytes,
    elements,
    tensor,
    tensor_bytes,
    times,
    value,
)
from trainmark.explain.profile import Operands

COMPARISONS = ("eq", "ne", "lt", "le", "gt", "ge", "isnan", "isinf", "isfinite", "logical_not", "logical_and")
LIST = "TensorList"
MOST_LISTS = 6  # that an operator takes
# Nothing is moved: a tensor is allocated, or seen in another shape.
VIEWS = frozenset(
    f"aten::{name}"
    for name in (
        *(
            "view",
            "reshape",
            "_reshape_alias",
            "_unsafe_view",
            "t",
            "transpose",
            "permute",
            "expand",
            "expand_as",
        ),
        *("as_strided", "as_strided_", "slice", "select", "narrow", "split", "chunk", "unbind", "squeeze"),
        *("unsqueeze", "squeeze_", "unsqueeze_", "flatten", "alias", "detach", "detach_", "view_as"),
        *("empty", "empty_like", "empty_strided", "new_empty", "new_empty_strided", "resize_", "set_"),
        *("result_type", "lift_fresh", "resolve_conj", "resolve_neg", "is_pinned", "split_with_sizes"),
    )
)


def passes(first: float, index: int = 0) -> Formula:
    """Return the formula of what moves an operand's bytes so many times, its results among them."""

    def cost(operands: Operands) -> OperatorCost | None:
        size = tensor_bytes(operands, index)
        return None if not size else OperatorCost(None, round(first * size))

    return cost


def nothing(operands: Operands) -> OperatorCost:
    return OperatorCost(None, 0)


def all_tensors(operands: Operands) -> OperatorCost | None:
    """Of an operator with its results among its operands, each moved once: what Inductor generates."""
    moved = added(*(tensor_bytes(operands, index) for index in range(len(operands.shapes))))
    return None if not moved else OperatorCost(None, moved)


def elementwise(name: str) -> Formula:
    """Return the formula of operands that are read and a result of their broadcast shape that is written."""
    leaf = name.rpartition("::")[2]
    in_place, compares = leaf.endswith("_"), leaf.rstrip("_") in COMPARISONS

    def cost(operands: Operands) -> OperatorCost | None:
        tensors = [index for index, shape in enumerate(operands.shapes) if shape is not None]
        if not tensors:
            return None
        read = added(*(tensor_bytes(operands, index) for index in tensors))
        if in_place:
            return OperatorCost(None, added(read, tensor_bytes(operands, tensors[0])))
        shape = broadcast([operands.shapes[index] or () for index in tensors])
        if shape is None:
            return None
        sizes = [element_bytes(operands, index) for index in tensors if tensor(operands, index)]
        known = [size for size in sizes if size is not None]
        size = 1 if compares else max(known) if known and len(known) == len(sizes) else None
        return OperatorCost(None, added(read, times(elements(shape), size)))

    return cost


def broadcast(shapes: list[tuple[int, ...]]) -> tuple[int, ...] | None:
    """Return the shape that these are broadcast to, None where they do not fit."""
    rank = max(map(len, shapes))
    padded = [(1,) * (rank - len(shape)) + shape for shape in shapes]
    extents = []
    for axis in zip(*padded, strict=True):
        wide = {extent for extent in axis if extent != 1}
        if len(wide) > 1:
            return None
        extents.append(wide.pop() if wide else 1)
    return tuple(extents)


def reduction(operands: Operands) -> OperatorCost | None:
    """Of what reads its operands; the little that it writes is left out."""
    return all_tensors(operands)


def copy(operands: Operands) -> OperatorCost | None:
    """Of copy_(to, from), each once; a source that is broadcast is small."""
    moved = added(tensor_bytes(operands, 0), tensor_bytes(operands, 1))
    return None if not moved else OperatorCost(None, moved)


def gather(operands: Operands) -> OperatorCost | None:
    """Of an embedding: rows of the table at `indices` are read and written."""
    table, indices = tensor(operands, 0), tensor(operands, 1)
    if table is None or indices is None or len(table) != 2:
        return None
    row = times(table[1], element_bytes(operands, 0))
    return OperatorCost(None, added(times(2 * elements(indices), row), tensor_bytes(operands, 1)))


def scatter(operands: Operands) -> OperatorCost | None:
    """Of an embedding's gradient: that of the rows is read, the table's written."""
    gradient, rows = tensor(operands, 0), value(operands, 2)
    if not gradient or not rows.isdecimal():
        return None
    table = times(int(rows) * gradient[-1], element_bytes(operands, 0))
    return OperatorCost(None, added(tensor_bytes(operands, 0), tensor_bytes(operands, 1), table))


def max_pool_backward(operands: Operands) -> OperatorCost | None:
    """Of (gradient, input, …, indices): what has the input's shape is written, the others are read."""
    last = len(operands.shapes) - 1
    return OperatorCost(None, added(*(tensor_bytes(operands, index) for index in (0, 1, last))))


def listed(name: str, size: int | None) -> Formula:
    """Return the formula of an operator on lists of tensors; profilers do not record their type.

    `size` is the bytes of an element. A fused AdamW reads weights, gradients and both moments and writes all
    but the gradients; a fused SGD reads weights, gradients and momentum. Other operators write one of their
    lists' size.
    """

    def cost(operands: Operands) -> OperatorCost | None:
        shapes = [
            shape
            for shape, kind in zip(operands.shapes, operands.types, strict=False)
            if kind == LIST and shape is not None
        ]
        # Older profilers record no shapes of lists: each list is one entry without extents.
        if not any(shapes) and len(shapes) <= MOST_LISTS:
            return None
        total = sum(map(elements, shapes))
        if "_fused_adam" in name:
            moved = total * 7 / 4
        elif "_fused_sgd" in name:
            moved = total * (5 / 3 if _lists(shapes, 3) == 3 else 3 / 2)
        elif "norm" in name or "non_finite" in name:
            moved = total * (2 if name.endswith("unscale_") else 1)
        else:
            most = 3 if "addc" in name else 1 if any(word in name for word in ("sqrt", "neg", "zero")) else 2
            moved = total * (1 + 1 / _lists(shapes, most))
        return OperatorCost(None, times(round(moved), size))

    return cost


def _lists(shapes: list[tuple[int, ...]], most: int) -> int:
    """Return how many equal lists these shapes are, one behind the other, `most` at most."""
    for count in range(most, 1, -1):
        length, rest = divmod(len(shapes), count)
        if not rest and all(shapes[index] == shapes[index % length] for index in range(len(shapes))):
            return count
    return 1


TRAFFIC: dict[str, Formula] = {
    **dict.fromkeys(
        (
            *("aten::native_batch_norm", "aten::cudnn_batch_norm", "aten::miopen_batch_norm"),
            *("aten::_native_batch_norm_legit", "aten::_batch_norm_with_update", "aten::batch_norm_elemt"),
            *("aten::native_layer_norm", "aten::native_group_norm", "aten::_fused_rms_norm"),
            *("aten::_softmax", "aten::_log_softmax"),
        ),
        passes(2),
    ),
    **dict.fromkeys(
        (
            *("aten::native_batch_norm_backward", "aten::cudnn_batch_norm_backward"),
            *("aten::miopen_batch_norm_backward", "aten::batch_norm_backward"),
            *("aten::native_layer_norm_backward", "aten::native_group_norm_backward"),
            *("aten::_fused_rms_norm_backward", "aten::_softmax_backward_data"),
            "aten::_log_softmax_backward_data",
        ),
        passes(3),
    ),
    **dict.fromkeys(("aten::fill_", "aten::zero_"), passes(1)),
    "aten::copy_": copy,
    "aten::embedding": gather,
    "aten::embedding_dense_backward": scatter,
    "aten::max_pool2d_with_indices": passes(1),
    "aten::max_pool2d_with_indices_backward": max_pool_backward,
    "aten::nll_loss_backward": passes(1, 1),
    "aten::nll_loss_forward": passes(1, 2),
}
