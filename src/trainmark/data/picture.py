"""What a file really is, whatever its name says: recognised by its bytes; only rare formats are decoded."""

from __future__ import annotations

from trainmark.data import headers
from trainmark.data.headers import PictureHeader

EMPTY, UNKNOWN, NOT_JPEG, NO_SIZE = "empty", "not-a-picture", "not-jpeg", "no-size"
TRUNCATED, CMYK, DEEP, ANIMATED, ONE_PIXEL = "truncated", "cmyk", "deep", "animated", "one-pixel"

PICTURE_DEFECTS = {
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
TOLERATED_DEFECTS = frozenset({CMYK, NOT_JPEG})


def picture_header(data: bytes) -> PictureHeader:
    """The header of the picture; of the format `other` where it is none that we know."""
    if data.startswith(headers.JPEG_START):
        return headers.jpeg_header(data)
    if data.startswith(headers.PNG_START):
        return headers.png_header(data)
    format = headers.rare_format(data)
    return headers.rare_header(data, format) if format else PictureHeader("other")


def picture_defects(data: bytes) -> list[str]:
    """Codes of all that is unusual in these bytes, the worst first; none for a sound JPEG."""
    if not data:
        return [EMPTY]
    header = picture_header(data)
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


def defect_sentence(name: str, codes: list[str]) -> str:
    """`train/n01/x.JPEG is no picture`, with all that was found."""
    return f"{name} {' and '.join(PICTURE_DEFECTS[code] for code in codes)}"
