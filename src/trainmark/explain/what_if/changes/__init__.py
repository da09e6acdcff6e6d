"""Every change that is predicted, one file for each kind."""

from __future__ import annotations

from collections.abc import Sequence

from trainmark.explain.explanation import WhatIf
from trainmark.explain.what_if.change import WhatIfChange
from trainmark.explain.what_if.changes import (
    batch,
    compiler,
    device,
    host,
    layout,
    optimizer,
    precision,
)
from trainmark.explain.what_if.record import VerifiedChange, interval, published
from trainmark.explain.what_if.situation import Situation

CHANGES: tuple[WhatIfChange, ...] = (
    *host.CHANGES,
    *compiler.CHANGES,
    *batch.CHANGES,
    *layout.CHANGES,
    *precision.CHANGES,
    *optimizer.CHANGES,
    *device.CHANGES,
)

# A change that makes the step longer by more than this is no answer to why it is slow.
WORSE = 1.05


def find(name: str) -> WhatIfChange | None:
    """Return the change of that name; None for another GPU, which is made of its datasheet."""
    return next((change for change in CHANGES if change.name == name), None)


def predict(situation: Situation, record: Sequence[VerifiedChange] | None = None) -> tuple[WhatIf, ...]:
    """Return what every change that applies would give, the shortest step first.

    Intervals are those that the record of verified predictions supports; without one it is the published.
    """
    entries = published() if record is None else tuple(record)
    what_ifs = []
    for change in (*CHANGES, *device.on_other_devices(situation)):
        prediction = change.predict(situation)
        if prediction is None or prediction.seconds <= 0:
            continue
        if change in CHANGES and prediction.seconds > situation.step * WORSE:
            continue
        waits = situation.device == "cuda" and prediction.waits_for_host  # else the host is the device
        bounds = interval(change.name, situation.device, entries, waits)
        how = change.how(situation)
        what_ifs.append(
            WhatIf(
                name=change.name,
                title=change.title,
                seconds=prediction.seconds,
                low=prediction.seconds * bounds.low,
                high=prediction.seconds * bounds.high,
                how=how.text,
                is_line=how.is_line,
                why=prediction.why,
                basis=bounds.basis,
                waits_for_host=waits,
            )
        )
    return tuple(sorted(what_ifs, key=lambda what_if: what_if.seconds))
