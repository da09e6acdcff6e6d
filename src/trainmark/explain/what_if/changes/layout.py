"""Channels last: convolutions on tensor cores read NHWC, and what is NCHW is turned around for them."""

from __future__ import annotations

from trainmark.explain.what_if.change import (
    Overrides,
    StepPrediction,
    WhatIfChange,
    issue_seconds,
    milliseconds,
    rebuilt,
    tuned_seconds,
)
from trainmark.explain.what_if.situation import Situation
from trainmark.view.message import _

LAUNCH_SECONDS = 5e-6  # one call of cudaLaunchKernel, without the operator around it


def channels_last(situation: Situation) -> StepPrediction | None:
    """The kernels that only change the layout fall away; CPU libraries block channels by themselves."""
    if situation.part("convolution") is None or situation.settings.layout == "NHWC":
        return None
    shares = without_layout_copies(situation)
    if not shares or situation.device != "cuda":
        return None
    total = sum(part.layout_copies for part in situation.parts)
    why = _("The step without {time} of changing layouts around convolutions.", time=milliseconds(total))
    norm = situation.part("normalisation")
    if norm is not None and tuned_seconds(norm) < norm.alone:
        # Libraries have their best batch norm for channels last.
        shares[norm.name] = tuned_seconds(norm)
        why = _(
            "The step without {time} of changing layouts around convolutions, and normalisation at what its"
            " bytes need: {norm}.",
            time=milliseconds(total),
            norm=milliseconds(tuned_seconds(norm)),
        )
    return rebuilt(situation, shares, issued_share(situation)).because(why)


def issued_share(situation: Situation) -> float:
    """Return the share of the host's time to issue a step that is left without kernels that change layouts.

    These cost no more than their launch: the convolution around them is dispatched once either way.
    """
    issue = issue_seconds(situation)
    removed = sum(part.launches * part.layout_share for part in situation.parts)
    return max(0.0, 1 - removed * LAUNCH_SECONDS / issue) if issue else 1.0


def without_layout_copies(situation: Situation) -> dict[str, float]:
    """Return the seconds of the classes that change layouts around convolutions, were that not needed."""
    return {
        part.name: part.alone * (1 - part.layout_share)
        for part in situation.parts
        if part.layout_copies and part.busy
    }


def layout_overrides(situation: Situation) -> Overrides | None:
    settings = situation.settings
    return {"layout": "NHWC"} if settings.layout == "NCHW" else None


CHANGES = (
    WhatIfChange(
        "channels last",
        _("tensors with channels last"),
        channels_last,
        _("NHWC in place of NCHW"),
        {
            "pytorch": "model = model.to(memory_format=torch.channels_last)  # and its inputs likewise",
            "tensorflow": 'tf.keras.backend.set_image_data_format("channels_last")',
        },
        layout_overrides,
    ),
)
