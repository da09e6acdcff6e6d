"""What an operator or a class does: floating-point operations, and the fewest bytes that it moves."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import prod
from typing import NamedTuple

from trainmark.explain.profile.model import Operands


class Cost(NamedTuple):
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


Formula = Callable[[Operands], Cost | None]

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
