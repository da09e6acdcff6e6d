"""Modules by the scopes of a compiled program: "jit(step)/transpose(jvp(Block_3))/Dense_0/dot_general"."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

from trainmark.explain.classes.names import is_optimiser

MOST_PATHS = 1 << 16
# A function that is compiled on its own is no module, whatever its name.
COMPILED = re.compile(r"\bp?jit\([^()]*\)")
SEPARATORS = re.compile(r"[/()]")
GRADIENTS = re.compile(r"(?:^|/)(?:gradient_tape|gradients)/")  # of TensorFlow
# Transformations of JAX and calls of either framework, which stand among the scopes.
TRANSFORMATIONS = frozenset(
    (
        *("transpose", "jvp", "vmap", "pmap", "jit", "pjit", "xmap", "shard_map", "linearize"),
        *("remat", "remat2", "checkpoint", "rematted_computation", "custom_vjp", "custom_jvp"),
        *("custom_vjp_call", "custom_jvp_call", "closed_call", "core_call"),
        *("while", "body", "cond", "branch", "scan", "StatefulPartitionedCall", "PartitionedCall"),
    )
)


class Scope(NamedTuple):
    """Modules from outside in, none where the program names none; `backward` in a gradient."""

    modules: tuple[str, ...]
    backward: bool


@lru_cache(MOST_PATHS)
def scope_of(path: str) -> Scope:
    """Return the modules around an instruction; the optimizer's step is none."""
    scope = path.rpartition("/")[0]
    tape = GRADIENTS.search(path)
    if tape:
        # The operator whose gradient it is follows its modules.
        scope = scope[tape.end() :].rpartition("/")[0]
    if is_optimiser(scope):
        return Scope((), False)
    words = SEPARATORS.split(COMPILED.sub("", scope))
    # Subscripts of a product ("BTNH,BSNH->BNTS") are scopes too.
    modules = (word for word in words if word and word not in TRANSFORMATIONS and "->" not in word)
    return Scope(tuple(modules), tape is not None or "transpose(" in scope)
