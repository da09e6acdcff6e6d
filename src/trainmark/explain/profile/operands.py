"""Shapes, types and plain values of an operator's inputs, as Kineto records them with `record_shapes`."""

from __future__ import annotations

from typing import Any

from trainmark.explain.profile.model import Operands

# Inputs that are no tensors.
NO_TENSOR = frozenset(
    ("", "Scalar", "ScalarList", "GenericList", "String", "Bool", "Int", "Double", "Device")
)
MOST_REMEMBERED = 100_000
# Longer values are lists of numbers of all tensors, which nothing is computed from.
MOST_TEXT = 60


class OperandsReader:
    """Makes the same Operands of the same inputs only once: a step repeats those of the step before."""

    def __init__(self) -> None:
        self._remembered: dict[Any, Operands] = {}

    def read(self, arguments: dict[str, Any]) -> tuple[Operands | None, int]:
        """Return the operands, and their size where they are new; None where they have an unexpected form."""
        shapes, types = arguments["Input Dims"], arguments.get("Input type", ())
        values = arguments.get("Concrete Inputs", ())
        try:
            content: Any = tuple(map(tuple, shapes)), tuple(types), tuple(values)
            operands = self._remembered.get(content)
        except TypeError:  # lists of tensors have lists of lists
            content, operands = None, None
        if operands is not None:
            return operands, 0
        operands = _operands(shapes, types, values)
        if operands is not None and content is not None:
            if len(self._remembered) >= MOST_REMEMBERED:
                self._remembered.clear()
            self._remembered[content] = operands
        size = 0 if operands is None else 10 + sum(1 + len(shape or ()) for shape in operands.shapes)
        return operands, size


def _operands(shapes: Any, types: Any, values: Any) -> Operands | None:
    if type(shapes) is not list:
        return None
    types = types if type(types) is list else ()
    values = values if type(values) is list else ()
    rows: list[tuple[tuple[int, ...] | None, str, str]] = []
    for number, shape in enumerate(shapes):
        name = types[number] if number < len(types) and type(types[number]) is str else ""
        value = _value(values[number]) if number < len(values) else ""
        if type(shape) is not list:
            return None
        if shape and all(type(inner) is list for inner in shape):
            tensors = [_shape(inner) for inner in shape]
            if None in tensors:
                return None
            rows += [(tensor, name, value) for tensor in tensors]
        elif not shape and name in NO_TENSOR and types:
            rows.append((None, name, value))
        else:
            sizes = _shape(shape)
            if sizes is None:
                return None
            rows.append((sizes, name, value))
    columns = tuple(zip(*rows, strict=True)) or ((), (), ())
    return Operands(columns[0], columns[1] if types else (), columns[2] if any(columns[2]) else ())


def _shape(shape: list[Any]) -> tuple[int, ...] | None:
    return tuple(shape) if all(type(size) is int and 0 <= size < 1 << 62 for size in shape) else None


def _value(value: Any) -> str:
    """Return lists, flags and whole numbers; a fraction is a rate or an epsilon, another in every step."""
    return value if type(value) is str and len(value) <= MOST_TEXT and "." not in value else ""
