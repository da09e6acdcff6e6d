"""Samples of a host count everything that runs there; they are called so."""

from __future__ import annotations

from dataclasses import replace

from trainmark.events.schema import is_host
from trainmark.report.document import Document


def with_host_named(document: Document, t: dict[str, str]) -> Document:
    """Return the document with the series of a whole host named as such: `cpu (host-wide)`."""
    named = (
        replace(series, device=t["host_wide"].format(device=series.device))
        if is_host(series.device)
        else series
        for series in document.samples
    )
    return replace(document, samples=tuple(named))
