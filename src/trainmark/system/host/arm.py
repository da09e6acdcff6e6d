"""Names of Arm processors by the numbers that Linux prints in /proc/cpuinfo in place of a name.

The numbers are those of the Main ID Register (MIDR_EL1): the implementer, and the part as it numbers it.
"""

from __future__ import annotations

ARM, CAVIUM, FUJITSU, HISILICON, NVIDIA, QUALCOMM, APPLE, AMPERE = (
    *(0x41, 0x43, 0x46, 0x48),
    *(0x4E, 0x51, 0x61, 0xC0),
)
PARTS: dict[tuple[int, int], str] = {
    (ARM, 0xD03): "Cortex-A53",
    (ARM, 0xD04): "Cortex-A35",
    (ARM, 0xD05): "Cortex-A55",
    (ARM, 0xD07): "Cortex-A57",
    (ARM, 0xD08): "Cortex-A72",
    (ARM, 0xD09): "Cortex-A73",
    (ARM, 0xD0A): "Cortex-A75",
    (ARM, 0xD0B): "Cortex-A76",
    (ARM, 0xD0C): "Neoverse-N1",
    (ARM, 0xD0D): "Cortex-A77",
    (ARM, 0xD40): "Neoverse-V1",
    (ARM, 0xD41): "Cortex-A78",
    (ARM, 0xD42): "Cortex-A78AE",
    (ARM, 0xD44): "Cortex-X1",
    (ARM, 0xD46): "Cortex-A510",
    (ARM, 0xD47): "Cortex-A710",
    (ARM, 0xD48): "Cortex-X2",
    (ARM, 0xD49): "Neoverse-N2",
    (ARM, 0xD4A): "Neoverse-E1",
    (ARM, 0xD4B): "Cortex-A78C",
    (ARM, 0xD4D): "Cortex-A715",
    (ARM, 0xD4E): "Cortex-X3",
    (ARM, 0xD4F): "Neoverse-V2",
    (ARM, 0xD80): "Cortex-A520",
    (ARM, 0xD81): "Cortex-A720",
    (ARM, 0xD82): "Cortex-X4",
    (ARM, 0xD83): "Neoverse-V3AE",
    (ARM, 0xD84): "Neoverse-V3",
    (ARM, 0xD85): "Cortex-X925",
    (ARM, 0xD87): "Cortex-A725",
    (ARM, 0xD8E): "Neoverse-N3",
    (CAVIUM, 0x0A1): "ThunderX",
    (CAVIUM, 0x0AF): "ThunderX2",
    (FUJITSU, 0x001): "A64FX",
    (HISILICON, 0xD01): "Kunpeng 920",
    (NVIDIA, 0x004): "Carmel",
    (QUALCOMM, 0xC00): "Falkor",
    (QUALCOMM, 0x001): "Oryon",
    (APPLE, 0x022): "Apple M1 Icestorm",
    (APPLE, 0x023): "Apple M1 Firestorm",
    (APPLE, 0x032): "Apple M2 Blizzard",
    (APPLE, 0x033): "Apple M2 Avalanche",
    (AMPERE, 0xAC3): "Ampere-1",
    (AMPERE, 0xAC4): "Ampere-1A",
}


def arm_name(implementer: str, part: str) -> str:
    """Return `Neoverse-N1` for `0x41` and `0xd0c`; of a part that is not known here, its numbers."""
    numbered = f"Arm implementer {implementer} part {part}"
    try:
        return PARTS.get((int(implementer, 16), int(part, 16)), numbered)
    except ValueError:
        return numbered
