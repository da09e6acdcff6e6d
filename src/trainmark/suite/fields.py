"""Every key a suite may hold: where it may stand, how its value is read, what it is without one."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from reprlib import repr as short
from typing import Any

from trainmark.base.errors import nearest
from trainmark.suite import values
from trainmark.suite.model import (
    ALL_STEPS,
    ANY,
    AUTO,
    Command,
    ContainerImage,
    Repeats,
    Topology,
    parse_topology,
)
from trainmark.workloads import registry
from trainmark.workloads.declaration import Axis, Workload

PRECISIONS = ("fp32", "tf32", "amp", "bf16")
POWERS_OF_TWO = "powers-of-two"
SYNTHETIC = ("synthetic", "synthetic-host")
ALL = "all"
REDUCE_OVERHEAD = "reduce-overhead"  # a mode of PyTorch's compiler


@dataclass(frozen=True)
class Field:
    """An axis takes one value or a list of them; the matrix is the product of all axes.

    What is `ours` has its default in the built-in workloads only: of a user's program nobody knows it.
    """

    parse: Callable[[Any], Any]
    default: Any
    axis: bool = False
    ours: bool = False


def topology(value: Any) -> Topology | str:
    return POWERS_OF_TWO if value == POWERS_OF_TWO else parse_topology(values.text(value))


def section(**keys: Callable[[Any], Any]) -> Callable[[Any], dict[str, Any]]:
    """A small mapping with fixed keys, such as `warmup: {steps: 20}`."""

    def parse(value: Any) -> dict[str, Any]:
        if not isinstance(value, dict):
            raise ValueError(f"takes {{{', '.join(keys)}}}, not {short(value)}")
        read = {}
        for key, item in value.items():
            if key not in keys:
                raise ValueError(f"has no key '{key}'{nearest(str(key), keys)}")
            try:
                read[key] = keys[key](item)
            except ValueError as error:
                raise ValueError(f"'{key}' {error}") from error
        return read

    return parse


def repeats(value: Any) -> Repeats:
    if not isinstance(value, dict):
        fixed = values.repeat_count(value)
        return Repeats(fixed, fixed)
    read = section(min=values.repeat_count, max=values.repeat_count, until=values.relative_width)(value)
    least = read.get("min", 5)
    most = read.get("max", max(20, least) if "until" in read else least)
    if most < least:
        raise ValueError(f"has max {most} below min {least}")
    return Repeats(least, most, read.get("until"))


def workload(value: Any) -> str | Command:
    if isinstance(value, str):
        return values.text(value)
    read = section(
        name=values.name,
        command=values.text,
        reader=values.text,
        pattern=values.regular_expression,
        unit=values.text,
        samples_per_step=values.positive,
        steps=_steps_of_program,
    )(value)
    if "command" not in read:
        raise ValueError("needs a 'command', or the name of a built-in workload")
    reader = read.get("reader", "pattern" if "pattern" in read else "probe")
    if reader == "pattern" and "pattern" not in read:
        raise ValueError("needs a 'pattern', a regular expression that matches the line of a step")
    return Command(
        name=read.get("name", "command"),
        line=read["command"],
        reader=reader,
        pattern=read.get("pattern"),
        unit=read.get("unit", "samples"),
        samples_per_step=read.get("samples_per_step"),
        steps=read.get("steps", ALL_STEPS),
    )


def _steps_of_program(value: Any) -> int | str:
    """Return how long an untouched program runs: `auto`, `all`, or a number of steps after its warm-up."""
    words = (AUTO, ALL_STEPS)
    return str(value) if value in words else values.count(value)


def container(value: Any) -> ContainerImage:
    if isinstance(value, str):
        return ContainerImage(values.text(value))
    read = section(
        image=values.text,
        runtime=values.one_of("docker", "podman", "apptainer"),
        options=values.words,
    )(value)
    if "image" not in read:
        raise ValueError("needs an 'image'")
    return ContainerImage(**read)


SUITE_FIELDS: dict[str, Field] = {
    "name": Field(values.name, None),
    "about": Field(values.text, ""),
    "seed": Field(values.count_or_none, 0),
    "baseline": Field(values.name, None),
    "cases": Field(lambda value: value, None),
}


def case_fields(workloads: Sequence[Workload]) -> dict[str, Field]:
    """Return every key that a case of these workloads may hold; the first of them gives the defaults."""
    first = workloads[0]
    axes = {axis.name: axis for workload in workloads for axis in workload.axes}
    metrics = {metric.name: metric for workload in workloads for metric in workload.metrics}
    layouts = (*_all(workload.layouts for workload in workloads), ANY)
    datasets = _all(workload.datasets for workload in workloads)
    loaders = _all(workload.loaders for workload in workloads)
    engines = _all(workload.engines for workload in workloads)
    until = section(**{name: values.share if each.share else values.number for name, each in metrics.items()})
    return {
        "workload": Field(workload, registry.DEFAULT),
        "framework": Field(values.text, "pytorch", axis=True),
        "precision": Field(values.one_of(*PRECISIONS), "fp32", axis=True, ours=True),
        "loss_scale": Field(values.loss_scale, "dynamic", axis=True, ours=True),
        "layout": Field(values.one_of(*layouts), ANY if first.layouts else None, axis=True, ours=True),
        "engine": Field(values.one_of(*engines), "stock", axis=True),
        "compile": Field(values.flag_or(AUTO, REDUCE_OVERHEAD), AUTO, axis=True, ours=True),
        "cuda_graph": Field(values.flag_or(AUTO), AUTO, axis=True, ours=True),
        "data": Field(values.one_of(*SYNTHETIC, *datasets), None, axis=True),
        "dataset": Field(values.text, None),
        "loader": Field(values.one_of(*loaders), first.loaders[0], axis=True),
        "workers": Field(values.count, None),
        "on_bad": Field(values.one_of("stop", "skip"), "stop"),
        "recipe": Field(values.text, first.standard_recipe, axis=True, ours=True),
        "epochs": Field(values.count, None),
        "until": Field(until, {}),
        "checkpoint": Field(section(steps=values.count_or_none, keep=values.count, folder=values.text), {}),
        **{name: Field(_axis(axis), axis.default, axis=True, ours=True) for name, axis in axes.items()},
        "batch_per_device": Field(values.count, 32, axis=True),
        "topology": Field(topology, Topology(1, 1), axis=True),
        "device": Field(values.one_of("auto", "cuda", "cpu"), "auto"),
        "when": Field(values.one_of("cuda", "cpu"), None),
        "threads": Field(values.count, None),
        "python": Field(values.text, None),
        "container": Field(container, None),
        "environment": Field(values.string_map, {}),
        "repeats": Field(repeats, Repeats()),
        "warmup": Field(section(steps=values.count_or_none), {"steps": 20}),
        "measure": Field(section(steps=values.count), {"steps": 100}),
        "limits": Field(section(trial=values.duration, silence=values.duration), {}),
        "retries": Field(values.count_or_none, 1),
    }


def _all(choices: Iterable[tuple[str, ...]]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(itertools.chain.from_iterable(choices)))


def _axis(axis: Axis) -> Callable[[Any], Any]:
    if axis.choices:
        return values.one_of(*axis.choices)
    return values.count if isinstance(axis.default, int) else values.text
