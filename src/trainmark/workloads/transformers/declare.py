"""The declaration of a family of decoders: axes, costs and proof from its shapes. Harness side."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from trainmark.metric import declared_metrics
from trainmark.workloads.common.optimizer.recipe import Recipe, Recipes
from trainmark.workloads.declaration import Axes, Axis, AxisValue, Layer, RecipeSummary, Workload
from trainmark.workloads.transformers import conventions, flops, options
from trainmark.workloads.transformers.conformance.declared import conformance
from trainmark.workloads.transformers.spec import METRICS


def axes(sizes: Mapping[str, Any], length: int) -> tuple[Axis, ...]:
    """Return what all transformers have; of the sizes the first is the default."""
    names: tuple[AxisValue, ...] = tuple(sizes)
    return (
        Axis("size", names[0], "size", choices=names),
        Axis("length", length, "length", slug="l{}", label="length {}"),
        Axis("accumulate", 1, "micro-batches", slug="a{}", label="{} micro-batches"),
        Axis("sharding", "none", "sharding", choices=tuple(options.SHARDING), label="sharding {}"),
        Axis("recompute", "none", "recompute", choices=tuple(options.RECOMPUTE), label="recompute {}"),
    )


def decoder(
    name: str,
    title: str,
    model: Any,
    recipes: Recipes[Any],
    length: int,
    names_elsewhere: Mapping[str, str] | None = None,
) -> Workload:
    """Return the declaration of a decoder whose `model` has SIZES and `shapes`."""

    def shape(axes: Axes) -> Any:
        return model.SIZES[axes["size"]]

    def count(axes: Axes) -> float:
        return float(flops.decoder_flops(shape(axes), int(axes["length"])))

    def hardware(axes: Axes) -> float:
        return float(flops.decoder_hardware_flops(shape(axes), int(axes["length"]), axes["recompute"]))

    def by_convention(axes: Axes) -> Mapping[str, float]:
        chosen = shape(axes)
        return conventions.decoder_conventions(chosen, int(axes["length"]), model.shapes(chosen))

    def layers(axes: Axes) -> Iterator[Layer]:
        chosen = shape(axes)
        return (Layer(*pair) for pair in flops.layers(chosen, int(axes["length"]), model.shapes(chosen)))

    return Workload(
        name=name,
        title=title,
        unit="tokens",
        short_unit="tok",
        batch_unit="sequences",
        axes=axes(model.SIZES, length),
        metrics=declared_metrics({"metrics": METRICS}),
        flops=count,
        hardware_flops=hardware,
        conventions=by_convention,
        samples_per_item=lambda axes: int(axes["length"]) * int(axes["accumulate"]),
        layers=layers,
        recipes=lambda: [summary(recipes.read(recipe)) for recipe in recipes.names()],
        standard_recipe=recipes.default,
        conformance=conformance(name),
        datasets=("tokens",),
        engines=tuple(options.ENGINES),
        names_elsewhere=names_elsewhere or {},
    )


def summary(recipe: Recipe) -> RecipeSummary:
    return RecipeSummary(
        name=recipe.name,
        about=recipe.about,
        source=recipe.source,
        optimizer=recipe.optimizer,
        epochs=recipe.epochs,
        batch=recipe.rate_batch,
        target=dict(recipe.target or {}),
    )
