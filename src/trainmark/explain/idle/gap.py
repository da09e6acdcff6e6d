"""A stretch of a step in which nothing ran on the device."""

from __future__ import annotations

from typing import NamedTuple


class Gap(NamedTuple):
    """Both ends on the profile's clock; `step` is the index of the step in `Profile.steps`."""

    start: int
    end: int
    step: int
