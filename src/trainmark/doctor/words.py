"""Numbers as people read them."""

from __future__ import annotations

UNITS = ("B", "KiB", "MiB", "GiB", "TiB")


def size(count: float) -> str:
    """Three digits and a unit: `64 MiB`, `1.86 GiB`."""
    for unit in UNITS[:-1]:
        if count < 1000:
            return f"{count:.3g} {unit}"
        count /= 1024
    return f"{count:.3g} {UNITS[-1]}"
