"""A case and its explanation as the situation that what-ifs are predicted from."""

from __future__ import annotations

from collections.abc import Mapping

from trainmark.explain.explanation import Explanation
from trainmark.explain.what_if.situation import DevicePeaks, Settings, Situation, situation_of
from trainmark.machine.devices import Datasheet, datasheets, known_datasheet
from trainmark.suite.model import Case, Command

# What a step is asked to run on instead, where the device at hand is another one.
COMPARED = ("A100 80GB SXM", "H100 SXM", "H200 SXM", "B200")


def settings_of(case: Case, command: str | None = None, framework: str | None = None) -> Settings:
    """Return how a settled case trains; `command` runs it as it is, `framework` is what its profile names."""
    own = isinstance(case.workload, Command)
    return Settings(
        workload=None if own else case.workload_name,
        framework=case.framework or framework,
        precision=case.precision,
        layout=case.layout,
        compiler=case.compiler,
        cuda_graph=case.cuda_graph is True,
        engine=case.engine,
        batch=case.batch_per_device,
        data=case.data,
        workers=case.workers,
        optimizer=_optimizer(case),
        compiles_update=_compiles_update(case),
        world_size=case.topology.devices,
        command=None if own else command,
    )


def _optimizer(case: Case) -> str | None:
    if isinstance(case.workload, Command):
        return None
    declared = case.family.workload
    wanted = case.recipe or declared.standard_recipe
    return next((recipe.optimizer for recipe in declared.recipes() if recipe.name == wanted), None)


def _compiles_update(case: Case) -> bool:
    """Whether `compile` makes kernels of the update too; a sharded one is the framework's own optimiser."""
    if isinstance(case.workload, Command) or is_sharded(case) or case.engine not in (None, "stock"):
        return False
    return case.framework in case.family.workload.compiles_update


def is_sharded(case: Case) -> bool:
    return dict(case.axes).get("sharding") not in (None, "none")


def parameters_of(case: Case) -> int | None:
    """Return the parameters of the case's model, as its family counts them."""
    if isinstance(case.workload, Command) or case.family.workload.layers is None:
        return None
    axes = {**case.family.workload.defaults, **dict(case.axes)}
    return sum(layer.parameters for layer in case.family.workload.layers(axes))


def case_situation(
    explanation: Explanation,
    case: Case,
    device_name: str,
    command: str | None = None,
    *,
    framework: str | None = None,
    product_peaks: Mapping[str, float] | None = None,
    device_memory: int | None = None,
    host: float | None = None,
    clock: float | None = None,
) -> Situation:
    """Return the situation of a case on a device, with the datasheets of the ones to compare with."""
    sheet = known_datasheet(device_name)
    others = [other for other in datasheets() if sheet and other.title in COMPARED and other != sheet]
    return situation_of(
        explanation,
        settings_of(case, command, framework),
        "cuda" if case.device == "cuda" else "cpu",
        product_peaks=product_peaks,
        datasheet=device_peaks(sheet) if sheet else None,
        others=tuple(map(device_peaks, others)),
        parameters=parameters_of(case),
        device_memory=device_memory,
        host=host,
        clock=clock,
    )


def device_peaks(sheet: Datasheet) -> DevicePeaks:
    """Return a datasheet as what-ifs take it."""
    return DevicePeaks(sheet.title, sheet.flops, sheet.bandwidth)
