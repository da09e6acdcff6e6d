"""What a workload family declares: suite, key, store, report, forecast, fit and conform take it from here.

A family is a folder with a `workload.py` that holds one `WORKLOAD`, and a program for each framework beside
it. Standard library only: the harness imports the declaration, never a program.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from trainmark.base.errors import UserError
from trainmark.metric import Metric
from trainmark.workloads.common.recipe import Recipes

__all__ = [
    "Axes",
    "Axis",
    "AxisValue",
    "Comparison",
    "Conformance",
    "Layer",
    "Metric",
    "RecipeSummary",
    "Variant",
    "Workload",
    "recipe_summaries",
]

LARGEST = 10**9
AxisValue = int | str
Axes = Mapping[str, AxisValue]


@dataclass(frozen=True)
class Axis:
    """A property of the model or of its input that changes the figure: an option, and part of the case key.

    Takes one of `choices` where there are any, else a whole number or text, as the default is. `slug` names a
    value in folders, `label` in tables, which leave a `quiet` axis out at its default. A whole number that
    takes memory as it grows, as the length of a sequence does, has a `fit_step`: `trainmark fit --search`
    finds the largest multiple of it that trains.
    """

    name: str
    default: AxisValue
    title: str
    slug: str = "{}"
    label: str = "{}"
    choices: tuple[AxisValue, ...] = ()
    fit_step: int = 0
    quiet: bool = False

    def parse(self, written: Any) -> AxisValue:
        """Return the value that text or a number stands for; UserError where it is none."""
        value = written
        if isinstance(self.default, int):
            if not str(written).isdecimal() or not 0 < int(written) <= LARGEST:
                raise UserError(f"'{self.name}' takes a whole number from 1 up, not {written!r}.")
            value = int(written)
        if self.choices and value not in self.choices:
            known = ", ".join(map(str, self.choices))
            raise UserError(f"'{self.name}' takes one of {known}, not {written!r}.")
        return value if isinstance(value, int) else str(value)

    def shown(self, value: AxisValue) -> str:
        """Return a value as tables name it; empty for the default of a quiet axis."""
        return "" if self.quiet and value == self.default else self.label.format(value)

    @property
    def option(self) -> str:
        """Name it on the command line of a program: `--image-size`."""
        return f"--{self.name.replace('_', '-')}"


class Layer(NamedTuple):
    """Trainable parameters, and multiply-adds of the forward pass for one sample."""

    parameters: int
    work: int


@dataclass(frozen=True)
class RecipeSummary:
    """A recipe for whoever must choose one; `batch` is the global one that its learning rate is given at."""

    name: str
    about: str
    source: str
    optimizer: str
    epochs: int
    batch: int
    target: Mapping[str, float]


def recipe_summaries(recipes: Recipes[Any]) -> list[RecipeSummary]:
    """Summarise the recipes in a family's folder."""
    return [
        RecipeSummary(
            name=recipe.name,
            about=recipe.about,
            source=recipe.source,
            optimizer=recipe.optimizer,
            epochs=recipe.epochs,
            batch=recipe.rate_batch,
            target=dict(recipe.target or {}),
        )
        for recipe in map(recipes.read, recipes.names())
    ]


@dataclass(frozen=True)
class Comparison:
    """The comparison of one short training with a reference, over all ranks.

    `differs` has a sentence for each difference, the gravest first; `observations`, and the `remark` about
    them, are what frameworks may do in more than one way.
    """

    differs: tuple[str, ...]
    largest_loss_error: float | None = None
    remark: str | None = None
    observations: tuple[tuple[str, str], ...] = ()


Compare = Callable[[Sequence[Mapping[str, Any]]], Comparison]


@dataclass(frozen=True)
class Variant:
    """A way to train that must give what the reference gives: another layout, micro-batches, shards.

    `arguments` follow those of every training. It is tried on each number of `ranks`, and on those of
    `ranks_if_unproven` where no earlier variant has passed. One that trains something else (by another
    optimizer) has its own `compare`.
    """

    label: str = ""
    arguments: tuple[str, ...] = ()
    ranks: tuple[int, ...] = (1, 2)
    ranks_if_unproven: tuple[int, ...] = ()
    compare: Compare | None = None


@dataclass(frozen=True)
class Conformance:
    """How a framework is proven to train this model: the arguments of a short training, and its comparison.

    A program that gets `--conform FILE` besides writes what it shows of itself there, as JSON; `compare`
    takes that of every rank. Without `variants` the layouts of the workload are tried.
    """

    arguments: Callable[[], tuple[str, ...]]
    compare: Compare
    variants: tuple[Variant, ...] = ()


def layout_variants(layouts: Sequence[str]) -> tuple[Variant, ...]:
    """Return a variant for each layout: all on one rank, on two the first that the framework offers."""
    return tuple(
        Variant(layout, ("--layout", layout), ranks=(1,), ranks_if_unproven=(2,)) for layout in layouts
    )


def _one(axes: Axes) -> int:
    return 1


@dataclass(frozen=True)
class Workload:
    """One family. `unit` is what a sample is called in every table; the first metric ranks trainings.

    `flops` are of one sample's forward and backward pass, `layers` run from input to output. `datasets` are
    the kinds of stored data that it can train from besides synthetic data, read by one of its `loaders`;
    `layouts` are those that its tensors can have, `engines` whose kernels train it. Of each the first is the
    default. `compiles_update` names the frameworks whose `compile` is for the update of parameters too. What
    is `learnable` trains to a finish line on synthetic data too. `names_elsewhere` are those of MLPerf
    (`mlperf`), AI-Rank (`airank`) and DLPerf (`dlperf`), for exports in their formats.

    A batch is counted in `batch_unit`, a step of one device takes `samples_per_item` samples for each: a
    sequence has many tokens. `hardware_flops` adds what is computed twice (activation recomputation), and
    `conventions` are the FLOP of one sample as other codes count them, by their names. `flops_by_class` are
    those that a step computes for one sample, by kernel class (convolution, matrix product, attention).
    `shares` names the folders of trainmark.workloads, beside `common`, whose code its programs are made of.
    """

    name: str
    title: str
    unit: str
    short_unit: str = ""
    axes: tuple[Axis, ...] = ()
    metrics: tuple[Metric, ...] = ()
    flops: Callable[[Axes], float] | None = None
    hardware_flops: Callable[[Axes], float] | None = None
    conventions: Callable[[Axes], Mapping[str, float]] | None = None
    flops_by_class: Callable[[Axes], Mapping[str, float]] | None = None
    samples_per_item: Callable[[Axes], int] = _one
    batch_unit: str = ""
    layers: Callable[[Axes], Iterable[Layer]] | None = None
    recipes: Callable[[], list[RecipeSummary]] = list
    standard_recipe: str | None = None
    conformance: Conformance | None = None
    datasets: tuple[str, ...] = ()
    loaders: tuple[str, ...] = ("host",)
    layouts: tuple[str, ...] = ()
    engines: tuple[str, ...] = ("stock",)
    compiles_update: tuple[str, ...] = ()
    shares: tuple[str, ...] = ()
    learnable: bool = False
    names_elsewhere: Mapping[str, str] = field(default_factory=dict)

    def axis(self, name: str) -> Axis:
        return next(axis for axis in self.axes if axis.name == name)

    @property
    def variants(self) -> tuple[Variant, ...]:
        """The ways to train that conformance is checked in."""
        declared = self.conformance.variants if self.conformance else ()
        return declared or layout_variants(self.layouts) or (Variant(),)

    @property
    def defaults(self) -> dict[str, AxisValue]:
        return {axis.name: axis.default for axis in self.axes}
