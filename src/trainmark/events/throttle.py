"""Why a GPU's clock is held down, by the driver's bits. Standard library only: it is sent to nodes too."""

from __future__ import annotations

# NVML's bits for a clock held below what the card could do. Left out are those that are no trouble: an idle
# card (0x1), and the clocks that the owner (0x2) or the display (0x100) asked for.
THROTTLE_BITS = {
    0x4: "sw-power-cap",
    0x8: "hw-slowdown",
    0x10: "sync-boost",
    0x20: "thermal",
    0x40: "thermal",
    0x80: "power-brake",
    0x200: "board-limit",
    0x400: "reliability",
}


def throttle_names(bits: int | None) -> tuple[str, ...]:
    """The reasons why the clock is held down, without those that are no trouble."""
    return tuple(dict.fromkeys(name for bit, name in THROTTLE_BITS.items() if (bits or 0) & bit))
