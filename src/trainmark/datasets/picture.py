"""What a file really is, whatever its name says: recognised by its bytes; only rare formats are decoded."""

from __future__ import annotations

from trainmark.datasets.headers import jpeg, png, rare
from trainmark.datasets.headers.header import Header

EMPTY, UNKNOWN, NOT_JPEG, NO_SIZE = "empty", "not-a-picture", "not-jpeg", "no-size"
TRUNCATED, CMYK, DEEP, ANIMATED, ONE_PIXEL = "truncated", "cmyk", "deep", "animated", "one-pixel"

WORDS = {
    EMPTY: "has no bytes",
    UNKNOWN: "is no picture",
    NOT_JPEG: "is a picture, but no JPEG",
    NO_SIZE: "does not tell its width and height",
    TRUNCATED: "ends before its end mark",
    CMYK: "has the four colours of print (CMYK)",
    DEEP: "has more than 8 bits a sample",
    ANIMATED: "has more than one frame",
    ONE_PIXEL: "has one pixel",
}
# ImageNet holds pictures of these kinds, and loaders cope; whatever else is wrong spoils a training.
BEARABLE = frozenset({CMYK, NOT_JPEG})


def look(data: bytes) -> Header:
    """The header of the picture; of the format `other` where it is none that we know."""
    if data.startswith(jpeg.START):
        return jpeg.look(data)
    if data.startswith(png.START):
        return png.look(data)
    format = rare.format_of(data)
    return rare.look(data, format) if format else Header("other")


def problems(data: bytes) -> list[str]:
    """Codes of all that is unusual in these bytes, the worst first; none for a sound JPEG."""
    if not data:
        return [EMPTY]
    header = look(data)
    if header.format == "other":
        return [UNKNOWN]
    sized = header.width > 0 and header.height > 0
    conditions = {
        TRUNCATED: not header.whole,
        NO_SIZE: header.whole and not sized,
        ONE_PIXEL: header.width == header.height == 1,
        ANIMATED: header.frames > 1,
        DEEP: header.bits > 8,
        NOT_JPEG: header.format != "jpeg",
        CMYK: header.cmyk,
    }
    return [code for code, holds in conditions.items() if holds]


def sentence(name: str, codes: list[str]) -> str:
    """`train/n01/x.JPEG is no picture`, with all that was found."""
    return f"{name} {' and '.join(WORDS[code] for code in codes)}"
