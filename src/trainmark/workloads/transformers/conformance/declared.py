"""The conformance of a transformer family as its workload.py declares it; numpy is imported when used."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from trainmark.workloads.declaration import Compare, Comparison, Conformance, Variant

STOCK = Variant()
# Eager, attention written out, unfused optimizer.
PLAIN = Variant("plain", ("--engine", "plain"), ranks=(1,), ranks_if_unproven=(2,))
# Two micro-batches of the same four sequences; on two ranks their gradients are exchanged once.
ACCUMULATE = Variant("accumulate 2", ("--batch", "2", "--accumulate", "2"))
RECOMPUTE = Variant("recompute", ("--recompute", "blocks"), ranks=(1,))
FSDP = Variant("fsdp", ("--sharding", "fsdp"), ranks=(2,))
FSDP_ACCUMULATE = Variant("fsdp, accumulate 2", ("--sharding", "fsdp", *ACCUMULATE.arguments), ranks=(2,))
VARIANTS = (STOCK, PLAIN, ACCUMULATE, RECOMPUTE, FSDP, FSDP_ACCUMULATE)


def conformance(
    family: str, optimizer: str = "adamw", variants: tuple[Variant, ...] = VARIANTS
) -> Conformance:
    """Declare the conformance of a family whose programs train by this optimizer unless another is given."""
    return Conformance(_arguments, comparison(family, optimizer), variants)


def optimizer_variant(family: str, optimizer: str) -> Variant:
    """Return the variant that trains by another optimizer, which has a reference of its own."""
    return Variant(optimizer, ("--optimizer", optimizer), compare=comparison(family, optimizer))


def comparison(family: str, optimizer: str) -> Compare:
    """Return the comparison with the reference of a family and an optimizer."""

    def compare_with_reference(shown: Sequence[Mapping[str, Any]]) -> Comparison:
        from trainmark.workloads.transformers.conformance.comparison import compare

        return compare(family, optimizer, shown)

    return compare_with_reference


def _arguments() -> tuple[str, ...]:
    from trainmark.workloads.transformers.conformance.initial import arguments

    return arguments()
