"""The colour of each kernel class, the same in bars, tables and timeline; explain.css has the values."""

from __future__ import annotations

from trainmark.explain.report.language.words import CLASSES

IDLE, OVERLAP = "k-idle", "k-overlap"


def look(name: str) -> str:
    """Return the CSS class of a kernel class; one that is not known looks like `other`."""
    order = list(CLASSES)
    return f"k-{order.index(name) if name in CLASSES else order.index('other')}"


def kind_look(kind: str, name: str) -> str:
    """Return the CSS class of a part of the step or of a difference."""
    return {"idle": IDLE, "overlap": OVERLAP, "rest": "k-rest"}.get(kind) or look(name)
