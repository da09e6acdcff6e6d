"""What link and device would give: communication hidden or faster, floors, the highest clock, another GPU."""

from __future__ import annotations

from functools import partial

from trainmark.explain.kernel_classes import PRODUCT_CLASSES
from trainmark.explain.what_if.change import (
    RebuiltStep,
    StepPrediction,
    WhatIfChange,
    issue_seconds,
    milliseconds,
    percent,
    rebuilt,
)
from trainmark.explain.what_if.changes.precision import product_seconds
from trainmark.explain.what_if.situation import COMMUNICATION, LAUNCH, DatasheetPeaks, Situation, StepPart
from trainmark.view.message import _, joined

LEAST_THROTTLING = 0.02  # clocks differ by as much without any cause


def hidden(situation: Situation) -> StepPrediction | None:
    """No step is shorter than its communication."""
    part = situation.part(COMMUNICATION)
    if part is None or not part.alone:
        return None
    seconds = max(situation.step - part.alone, part.busy)
    return StepPrediction(
        seconds,
        _("The step without {time} of communication that nothing hides.", time=milliseconds(part.alone)),
    )


def link_twice_as_fast(situation: Situation) -> StepPrediction | None:
    part = situation.part(COMMUNICATION)
    if part is None or not part.alone:
        return None
    return StepPrediction(
        situation.step - part.alone / 2,
        _(
            "Half of the {time} of exposed communication: transfers take half the time.",
            time=milliseconds(part.alone),
        ),
    )


def at_floors(situation: Situation) -> StepPrediction | None:
    """Idle time and classes without a floor stay as they are."""
    known = [part for part in situation.parts if part.floor is not None and part.busy]
    if not known:
        return None
    alone = {part.name: part.alone * min(1.0, (part.floor or 0.0) / part.busy) for part in known}
    saved = sum(part.alone - alone[part.name] for part in known)
    return rebuilt_without_host(situation, alone).because(
        _(
            "{time} less, were every class with a known floor at it; idle time as now.",
            time=milliseconds(saved),
        )
    )


def rebuilt_without_host(situation: Situation, alone: dict[str, float]) -> RebuiltStep:
    """Return the step with these times of classes, its idle time as it is: were no host ever the limit."""
    return rebuilt(situation, alone, idle={LAUNCH: situation.idle_for(LAUNCH)})


def full_clock(situation: Situation) -> StepPrediction | None:
    """Products follow the clock; what the memory bounds has a clock of its own."""
    clock = situation.clock
    if clock is None or clock > 1 - LEAST_THROTTLING:
        return None
    bound = [part for part in situation.parts if part.name in PRODUCT_CLASSES and part.bound != "memory"]
    alone = {part.name: part.alone * clock for part in bound}
    return rebuilt(situation, alone).because(
        _(
            "The device ran at {share} of its highest clock, and products take as much longer.",
            share=percent(clock),
        )
    )


def on_device(other: DatasheetPeaks, situation: Situation) -> StepPrediction | None:
    """Each class by the ratio of the peaks that bound it; the host and the link stay."""
    sheet, precision = situation.datasheet, situation.settings.precision
    precision = "fp16" if precision == "amp" else precision
    if sheet is None or precision is None or sheet.title == other.title:
        return None
    now, then = sheet.flops.get(precision), other.flops.get(precision)
    if not now or not then or not sheet.bandwidth or not other.bandwidth:
        return None
    flops, memory = then / now, other.bandwidth / sheet.bandwidth
    alone = {
        part.name: _elsewhere(part, situation, flops, memory)
        for part in situation.parts
        if part.name != COMMUNICATION
    }
    step = rebuilt(situation, alone).because(
        _(
            "{device} has {flops} times the {precision} peak and {memory} times the bandwidth, by their"
            " datasheets; the host and the link stay.",
            device=other.title,
            flops=f"{flops:.2f}",
            precision=precision,
            memory=f"{memory:.2f}",
        )
    )
    if situation.device == "cuda" and step.waits_for_host:
        issue = milliseconds(issue_seconds(situation))
        waits = _("There the host sets the step: it takes {time} to issue one.", time=issue)
        return step._replace(why=joined([step.why, waits], " "))
    return step


def _elsewhere(part: StepPart, situation: Situation, flops: float, memory: float) -> float:
    """A class with products stays as far from its roofline as it is; any other follows the memory."""
    if part.name not in PRODUCT_CLASSES:
        return part.alone / memory
    peak, bandwidth = situation.peaks.flops, situation.peaks.bandwidth
    if part.flop and peak:
        scaled = bandwidth and bandwidth * memory
        return product_seconds(part, peak, peak * flops, bandwidth, scaled)
    return part.alone / min(flops, memory)


def on_other_devices(situation: Situation) -> tuple[WhatIfChange, ...]:
    return tuple(
        WhatIfChange(
            f"on {other.title}",
            _("on a {device}", device=other.title),
            partial(on_device, other),
            _("use a {device}", device=other.title),
        )
        for other in situation.others
    )


CHANGES = (
    WhatIfChange(
        "communication hidden",
        _("communication hidden under computing"),
        hidden,
        _("reduce gradients while others are still computed"),
        {"pytorch": "DistributedDataParallel(model, bucket_cap_mb=10)"},
    ),
    WhatIfChange(
        "link ×2",
        _("a link of twice the bandwidth"),
        link_twice_as_fast,
        lines={
            "": lambda situation: (
                "trainmark doctor  # checks the link"
                + ("; NCCL_DEBUG=INFO tells which one is used" if situation.device == "cuda" else "")
            )
        },
    ),
    WhatIfChange(
        "floors",
        _("every class at its floor"),
        at_floors,
        _("the best that kernels could give on this device; no setting does it"),
    ),
    WhatIfChange(
        "full clock",
        _("the device at its highest clock"),
        full_clock,
        lines={"": "nvidia-smi -q -d PERFORMANCE,POWER  # says why; nvidia-smi -pl raises a power cap"},
    ),
)
