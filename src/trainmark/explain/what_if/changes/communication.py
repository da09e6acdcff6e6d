"""Communication: hidden, or over a faster link."""

from __future__ import annotations

from trainmark.explain.what_if.change import StepPrediction, WhatIfChange, milliseconds
from trainmark.explain.what_if.situation import COMMUNICATION, Situation
from trainmark.view.message import _


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
)
