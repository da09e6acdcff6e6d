"""`layout: any` is the framework's own choice: what to ask it for, and in which order."""

from __future__ import annotations

from dataclasses import replace

from trainmark.suite.model import ANY, Case

# The faster one first, as a rule: tensor cores read channels last, CPU libraries block channels themselves.
PREFERRED = {"cuda": ("NHWC", "NCHW"), "cpu": ("NCHW", "NHWC")}


def choices(case: Case) -> tuple[Case, ...]:
    """The case as it may run: in the layout that it names, or in either, the preferred one first."""
    if case.layout != ANY:
        return (case,)
    return tuple(replace(case, layout=layout) for layout in PREFERRED[case.device])
