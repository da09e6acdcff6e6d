"""The precision in which a step multiplies: by the names of its kernels, on a CPU by its operands."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np

from trainmark.explain.classes import PRODUCT_CLASSES
from trainmark.explain.classes.names import class_of_operator
from trainmark.explain.explanation import ClassTime
from trainmark.explain.profile.model import HostKind, Profile

BANDWIDTH = "bandwidth"  # measured beside the FLOP/s of precisions

# Kernel names by the operands that they multiply, the narrower first: cuBLAS, cuDNN, CUTLASS. In cuBLAS's
# `nvjet_sm90_tst_256x128…` the letters are operands, arithmetic and result: t bfloat16, h float16, s float32.
PRECISION_NAMES = {
    "bf16": re.compile(r"bf16|bfloat16|nvjet_(?:\w+?_)?t[st][st]_"),
    "amp": re.compile(r"fp16|f16f16|16816|h884|hgemm|_half|half_t|h1688|nvjet_(?:\w+?_)?h[sh][sh]_"),
    "tf32": re.compile(r"tf32|s1688|nvjet_(?:\w+?_)?sst_"),
    "fp32": re.compile(r"sgemm|ffma|simt|f32f32_f32f32_f32|scudnn|nvjet_(?:\w+?_)?sss_"),
}
OPERAND_TYPES = {"float": "fp32", "c10::BFloat16": "bf16", "c10::Half": "amp"}  # as Kineto names them


def precision_of(classes: Sequence[ClassTime]) -> str | None:
    """Return the precision in which most of the time of products is spent, by the names of their kernels."""
    seconds: Counter[str] = Counter()
    for time in classes:
        for kernel in time.kernels if time.name in PRODUCT_CLASSES else ():
            name = kernel.name.lower()
            named = (precision for precision, names in PRECISION_NAMES.items() if names.search(name))
            if precision := next(named, None):
                seconds[precision] += kernel.nanoseconds
    return max(seconds, key=seconds.__getitem__) if seconds else None


def precision_of_operands(profile: Profile) -> str | None:
    """Return the precision of most products' first operands; a GPU may multiply float32 as tf32."""
    host = profile.host
    products = [index for index, name in enumerate(host.names) if class_of_operator(name) in PRODUCT_CLASSES]
    rows = np.flatnonzero(np.isin(host.name, products) & (host.kind == HostKind.OPERATOR)).tolist()
    types = [operands.types[0] for row in rows if (operands := host.operands.get(row)) and operands.types]
    known = Counter(OPERAND_TYPES[name] for name in types if name in OPERAND_TYPES)
    return known.most_common(1)[0][0] if known else None


def product_peak(
    measured: Mapping[str, float], classes: Sequence[ClassTime], profile: Profile, detail: Profile | None
) -> float | None:
    """Return the measured FLOP/s of the precision that a program nobody described multiplies in."""
    precision = precision_of(classes)
    if precision is None and profile.device == "cpu":
        precision = precision_of_operands(detail or profile)
    only = [name for name in measured if name != BANDWIDTH]
    if precision is None and len(only) == 1:
        precision = only[0]
    return measured.get(precision or "")
