"""A suite after validation: the cases it asks for, their topologies and the rules they are measured by."""

from __future__ import annotations

import re
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from trainmark.base.errors import UserError
from trainmark.workloads import registry
from trainmark.workloads.declaration import AxisValue
from trainmark.workloads.registry import Family


class SuiteError(UserError):
    """One sentence: where, what is wrong, what to do."""


WRITTEN = re.compile(r"([1-9]\d{0,4})n([1-9]\d{0,3})g")


@dataclass(frozen=True, order=True)
class Topology:
    nodes: int
    devices_per_node: int

    @property
    def devices(self) -> int:
        return self.nodes * self.devices_per_node

    def __str__(self) -> str:
        return f"{self.nodes}n{self.devices_per_node}g"


def parse_topology(text: str) -> Topology:
    match = WRITTEN.fullmatch(text.strip())
    if not match:
        raise ValueError(f"'{text}' is not a topology; write nodes and devices per node as in 1n8g")
    return Topology(int(match[1]), int(match[2]))


ONE_DEVICE = Topology(1, 1)


def powers_of_two(most: Topology) -> list[Topology]:
    """1n1g, 1n2g, … up to what one node has, then 2n8g, 4n8g, … of whole nodes; and the most itself."""
    within = [Topology(1, count) for count in _doubling(most.devices_per_node)]
    return [
        *within,
        *(Topology(nodes, most.devices_per_node) for nodes in _doubling(most.nodes) if nodes > 1),
    ]


def _doubling(most: int) -> list[int]:
    counts = [1 << exponent for exponent in range(most.bit_length()) if 1 << exponent <= most]
    return sorted({*counts, most})


ANY = "any"  # a layout that is still to be chosen
UNTOUCHED = "auto"  # the reader of a program that is watched by hooks
ALL_STEPS = "all"  # a program that is left to its own end
AUTO = "auto"  # likewise whether to compile, and whether to capture a graph


@dataclass(frozen=True)
class Command:
    """Any program: a shell command, and the reader that understands what it prints or emits.

    `samples_per_step` count all ranks. An untouched program is ended after its warm-up and `steps` more;
    `auto` is as many as give a figure.
    """

    name: str
    line: str
    reader: str
    pattern: str | None = None
    unit: str = "samples"
    samples_per_step: float | None = None
    steps: int | str = ALL_STEPS

    @property
    def untouched(self) -> bool:
        """Whether the program knows nothing of us: hooks watch it, and it starts its own ranks."""
        return self.reader == UNTOUCHED


@dataclass(frozen=True)
class ContainerImage:
    """An image that has the framework; `options` go to the runtime before the image."""

    image: str
    runtime: str = "docker"
    options: tuple[str, ...] = ()


@dataclass(frozen=True)
class TrainingPlan:
    """Training by epochs: how many at most, the finish line, and what is kept to go on from.

    `epochs` None is as many as the recipe has; `until` pairs a metric with the value to be reached.
    """

    epochs: int | None = None
    until: tuple[tuple[str, float], ...] = ()
    checkpoint_steps: int = 0
    checkpoints_kept: int = 2
    checkpoint_folder: str | None = None

    @property
    def target(self) -> str:
        """`perplexity=20`, or how long it goes on where there is no line to cross."""
        return ",".join(f"{name}={share:g}" for name, share in self.until) or f"epochs={self.epochs}"


@dataclass(frozen=True)
class Repeats:
    """At least `least`; up to `most` while the 95 % interval is wider than ± `until` of the median."""

    least: int = 5
    most: int = 5
    until: float | None = None


@dataclass(frozen=True)
class CaseRules:
    """How long a trial runs, how often, and when it is given up. Times in seconds."""

    repeats: Repeats = Repeats()
    warmup_steps: int = 20
    measure_steps: int = 100
    trial_limit: float = 1800.0
    silence_limit: float = 600.0  # a framework may compile its first step and print nothing meanwhile
    retries: int = 1

    @property
    def steps(self) -> int:
        return self.warmup_steps + self.measure_steps


@dataclass(frozen=True)
class Case:
    """One point of the matrix: all that changes the figure. None is not specified, for a user's program.

    `axes` are those that the workload declares; a `recipe` of None is the workload's standard one.
    """

    workload: str | Command
    framework: str | None
    precision: str | None
    loss_scale: str | None
    layout: str | None
    compile: bool | str | None
    cuda_graph: bool | str | None
    data: str | None
    axes: tuple[tuple[str, AxisValue], ...]
    batch_per_device: int | None
    topology: Topology
    device: str
    when: str | None = None
    label: str | None = None
    threads: int | None = None
    fair_threads: int | None = None
    python: str | None = None
    container: ContainerImage | None = None
    environment: tuple[tuple[str, str], ...] = ()
    dataset: str | None = None
    loader: str | None = None
    workers: int | None = None
    on_bad: str | None = None
    recipe: str | None = None
    course: TrainingPlan | None = None
    engine: str = "stock"
    rules: CaseRules = CaseRules()

    @property
    def workload_name(self) -> str:
        return self.workload.name if isinstance(self.workload, Command) else self.family.workload.name

    @property
    def family(self) -> Family:
        """Of a built-in workload or a plug-in; a command has none."""
        assert isinstance(self.workload, str)
        return registry.find(self.workload)

    @property
    def variant(self) -> str | None:
        """What it runs in, where the suite says so, changes the figure: such a case is known by its name."""
        own = self.python or self.container or self.environment
        return (self.label or "custom") if own else None

    @property
    def compiler(self) -> str | None:
        """`compile`, or a mode that goes by a name of its own; None without a compiler."""
        if isinstance(self.compile, str):
            return None if self.compile == AUTO else self.compile
        return "compile" if self.compile else None

    def goes_by(self, name: str | None) -> bool:
        """Whether it has this name: its own, its workload's, or the slug."""
        return name in (self.label, self.workload_name, self.slug)

    @property
    def left_open(self) -> tuple[str, ...]:
        """What is still to be chosen, by the framework and the device."""
        settings = {"layout": ANY, "compile": AUTO, "cuda_graph": AUTO}
        return tuple(name for name, unsaid in settings.items() if getattr(self, name) == unsaid)

    @property
    def _special_axes(self) -> list[str]:
        """The axes that are not at their default."""
        of_command = isinstance(self.workload, Command)
        known = registry.axes() if of_command else {axis.name: axis for axis in self.family.workload.axes}
        return [known[name].slug.format(value) for name, value in self.axes if value != known[name].default]

    @property
    def slug(self) -> str:
        """The folder name: what every case has, then what sets this one apart from the plain one."""
        who = "" if self.workload == registry.DEFAULT else self.workload_name
        precision = self.precision if self.loss_scale is None else f"{self.precision}-{self.loss_scale}"
        special = [
            "nhwc" if self.layout == "NHWC" else "",
            self.engine if self.engine != "stock" else "",
            self.compiler or "",
            "graph" if self.cuda_graph is True else "",
            "host" if self.data == "synthetic-host" else "",
            f"{self.data}-{self.loader}" if self.loader else "",
            Path(self.recipe).stem if self.recipe else "",
            self.course.target.replace("=", "-").replace(",", "-") if self.course else "",
            *self._special_axes,
            f"t{self.threads}" if self.threads else "",
            self.variant or "",
        ]
        batch = None if self.batch_per_device is None else f"b{self.batch_per_device}"
        plain = [who, self.framework, precision, batch, str(self.topology)]
        return "-".join(filter(None, [*plain, *special]))


@dataclass(frozen=True)
class Suite:
    """`text` is the YAML it came from, overrides applied: what a run keeps so that it can be repeated.

    `baseline` names the case that all others are compared with, until the ratios are certain.
    """

    name: str
    about: str
    cases: tuple[Case, ...]
    seed: int
    text: str
    folder: str | None = field(default=None, compare=False)
    baseline: str | None = None


WRITTEN_AS_THEY_ARE = (
    "workload framework precision loss_scale layout engine compile cuda_graph data dataset loader workers"
    " on_bad recipe batch_per_device device threads python"
)


def fields_of(case: Case, repeats: int) -> dict[str, Any]:
    """Return a case as a suite writes it; a training by epochs is measured by its steps."""
    rules = case.rules
    fields = {name: getattr(case, name) for name in WRITTEN_AS_THEY_ARE.split()}
    if case.container is not None:
        fields["container"] = {**asdict(case.container), "options": list(case.container.options)}
    fields |= dict(case.axes)
    fields |= {
        "name": case.label,
        "environment": dict(case.environment),
        "topology": str(case.topology),
        "repeats": repeats,
        "warmup": {"steps": rules.warmup_steps},
        "measure": {"steps": rules.measure_steps},
        "limits": {"trial": rules.trial_limit, "silence": rules.silence_limit},
        "retries": rules.retries,
    }
    return {name: value for name, value in fields.items() if value is not None}
