"""What is known of a picture before it is decoded."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Header:
    """Width, height, components, bits and frames are 0 where the bytes do not tell.

    `bits` are those of one sample; `whole` says that neither the end mark nor data is missing.
    """

    format: str
    width: int = 0
    height: int = 0
    components: int = 0
    bits: int = 0
    frames: int = 0
    whole: bool = False
    cmyk: bool = False


def big(data: bytes, at: int, size: int) -> int:
    """The number there, high byte first; bytes behind the end count as none."""
    return int.from_bytes(data[at : at + size], "big")


def little(data: bytes, at: int, size: int) -> int:
    return int.from_bytes(data[at : at + size], "little")
