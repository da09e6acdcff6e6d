"""Arithmetic precisions as heads and headings name them."""

from __future__ import annotations

import re

from trainmark.published.audit.report.number import normal

PATTERNS = (
    ("fp4", r"fp-? ?4(?!\d)"),
    ("fp8", r"fp-? ?8(?!\d)|float8|\be4m3\b"),
    ("bf16", r"bf-? ?16|bfloat16"),
    ("tf32", r"tf-? ?32"),
    ("fp32", r"fp-? ?32|float32|(?:single|full)[- ]precision|单精度"),
    (
        "amp",
        r"(?:mixed|half)[- ]precision|(?<![a-z])(?:amp|mixed)(?![a-z])|fp-? ?16|float16|混合精度|半精度",
    ),
)  # fmt: skip
COMPILED = tuple((name, re.compile(pattern, re.I)) for name, pattern in PATTERNS)
ANY = re.compile("|".join(pattern for _, pattern in PATTERNS), re.I)
# Tables that compare two precisions set one of each class side by side.
CLASSES = {"fp32": "full", "tf32": "full", "amp": "reduced", "bf16": "reduced", "fp8": "fp8", "fp4": "fp4"}


def precisions_in(text: str) -> tuple[str, ...]:
    """The precisions that a text names, each once, as they come."""
    plain = normal(text).replace("_", " ")
    places = [(match.start(), name) for name, pattern in COMPILED if (match := pattern.search(plain))]
    return tuple(name for _, name in sorted(places))


def only_precision(text: str) -> str | None:
    """The one precision that a text names, `TF32/FP32` being one; None where it names none or several."""
    precisions = precisions_in(text)
    return precisions[0] if len({CLASSES[name] for name in precisions}) == 1 else None


def same_class(one: str | None, other: str | None) -> bool:
    return one is not None and other is not None and CLASSES[one] == CLASSES[other]


def without_precision(text: str) -> str:
    """A head without the precision it names: what two columns of different precision have in common."""
    plain = ANY.sub(" ", normal(text).lower().replace("_", " "))
    return " ".join(re.sub(r"[\W_]+", " ", plain).split())
