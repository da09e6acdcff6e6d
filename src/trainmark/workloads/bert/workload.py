"""BERT's pre-training on sequences with masked tokens, declared."""

from __future__ import annotations

from dataclasses import replace

from trainmark.workloads.bert.shared import OPTIMIZERS, PREDICTIONS, SPEC
from trainmark.workloads.declaration import Axis, Variant
from trainmark.workloads.transformers import declare

AXES = (
    Axis("optimizer", "recipe", "optimizer", choices=OPTIMIZERS, label="optimizer {}"),
    Axis("predictions", "masked", "predictions", choices=PREDICTIONS, label="predictions {}"),
)
ADAMW = declare.optimizer_variant("bert", "adamw")


def by_adamw(variant: Variant) -> Variant:
    """Return a variant for what has no LAMB of its own."""
    arguments = (*ADAMW.arguments, *variant.arguments)
    return replace(variant, label=f"adamw, {variant.label}", arguments=arguments, compare=ADAMW.compare)


# The head over all tokens has no other loss: those without a label count for nothing.
ALL = Variant("predictions all", ("--predictions", "all"), ranks=(1,))
VARIANTS = (
    declare.STOCK,
    ADAMW,
    ALL,
    declare.ACCUMULATE,
    declare.RECOMPUTE,
    *map(by_adamw, (declare.PLAIN, declare.FSDP, declare.FSDP_ACCUMULATE)),
)

WORKLOAD = declare.transformer(SPEC, {"mlperf": "bert"}, AXES, declare.conformance("bert", "lamb", VARIANTS))
