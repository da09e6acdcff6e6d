"""The declaration of a family of transformers: axes, costs, and the variants that prove it. Harness side.

Numpy is imported when the proof is made.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import SimpleNamespace
from typing import Any

from trainmark.metric import declared_metrics
from trainmark.workloads.declaration import (
    Axes,
    Axis,
    AxisValue,
    Compare,
    Comparison,
    Conformance,
    Layer,
    Variant,
    Workload,
    recipe_summaries,
)
from trainmark.workloads.transformers import flops
from trainmark.workloads.transformers import spec as options
from trainmark.workloads.transformers.spec import TransformerSpec

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
    return Conformance(_conformance_arguments, comparison(family, optimizer), variants)


def optimizer_variant(family: str, optimizer: str) -> Variant:
    """Return the variant that trains by another optimizer, which has a reference of its own."""
    return Variant(optimizer, ("--optimizer", optimizer), compare=comparison(family, optimizer))


def comparison(family: str, optimizer: str) -> Compare:
    """Return the comparison with the reference of a family and an optimizer."""

    def compare_with_reference(shown: Sequence[Mapping[str, Any]]) -> Comparison:
        from trainmark.workloads.transformers.conformance.reference import compare

        return compare(family, optimizer, shown)

    return compare_with_reference


def _conformance_arguments() -> tuple[str, ...]:
    from trainmark.workloads.transformers.conformance.observe import arguments

    return arguments()


def axes(spec: TransformerSpec) -> tuple[Axis, ...]:
    """Return what all transformers have; of the sizes the first is the default."""
    names: tuple[AxisValue, ...] = tuple(spec.sizes)
    return (
        Axis("size", names[0], "size", choices=names),
        Axis("length", spec.length, "length", slug="l{}", label="length {}", fit_step=128),
        Axis("accumulate", 1, "micro-batches", slug="a{}", label="{} micro-batches", quiet=True),
        Axis("sharding", "none", "sharding", label="{}", choices=options.SHARDING, quiet=True),
        Axis(
            *("recompute", "none", "recompute"),
            slug="recompute-{}",
            label="recompute {}",
            choices=flops.RECOMPUTE,
            quiet=True,
        ),
    )


def transformer(
    spec: TransformerSpec,
    names_elsewhere: Mapping[str, str],
    more_axes: tuple[Axis, ...] = (),
    proof: Conformance | None = None,
) -> Workload:
    """Return the declaration of a family; its costs are those that its programs report."""

    def chosen(axes: Axes) -> SimpleNamespace:
        return SimpleNamespace(**axes, shape=spec.sizes[axes["size"]])

    return Workload(
        name=spec.name,
        title=spec.title,
        unit=spec.unit,
        short_unit=spec.short_unit,
        batch_unit="sequences",
        axes=(*axes(spec), *more_axes),
        metrics=declared_metrics({"metrics": spec.metrics}),
        flops=lambda axes: float(spec.flops_per_sample(chosen(axes))),
        hardware_flops=lambda axes: float(spec.hardware_flops_per_sample(chosen(axes))),
        conventions=lambda axes: spec.flops_by_convention(chosen(axes)),
        flops_by_class=lambda axes: spec.flops_by_class(chosen(axes)),
        samples_per_item=lambda axes: spec.samples_per_sequence(chosen(axes)) * int(axes["accumulate"]),
        layers=lambda axes: (Layer(*pair) for pair in spec.layers(chosen(axes))),
        recipes=lambda: recipe_summaries(spec.recipes),
        standard_recipe=spec.recipes.default,
        conformance=proof or conformance(spec.name),
        datasets=spec.datasets,
        engines=options.ENGINES,
        compiles_update=("pytorch", "tensorflow"),
        names_elsewhere=names_elsewhere,
        shares=("transformers",),
    )
