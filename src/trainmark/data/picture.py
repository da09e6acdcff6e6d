"""What a file really is, whatever its name says, and what is wrong with it: told by its bytes.

JPEG and PNG are read here, other formats by Pillow; nothing raises.
"""

from __future__ import annotations

import io
import logging
import re
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from PIL.Image import Image

EMPTY, UNKNOWN, NOT_JPEG, NO_SIZE = "empty", "not-a-picture", "not-jpeg", "no-size"
TRUNCATED, CMYK, DEEP, ANIMATED, ONE_PIXEL = "truncated", "cmyk", "deep", "animated", "one-pixel"
UNREADABLE, NO_FILE, NO_LABEL, TOO_LARGE = "unreadable", "no-file", "label-out-of-range", "too-large"
NAME, MISLABELLED, EMPTY_CLASS, UNREADABLE_FOLDER = "name", "mislabelled", "empty-class", "unreadable-folder"

# Of its bytes; then of its place in a set.
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
ALL_DEFECTS = {
    **PICTURE_DEFECTS,
    UNREADABLE: "cannot be read",
    NO_FILE: "is no plain file",
    NO_LABEL: "has a label out of range",
    TOO_LARGE: "is larger than the format allows",
    NAME: "has a name that the format cannot hold",
    MISLABELLED: "is the same picture as one of another class",
    EMPTY_CLASS: "is a class without a picture",
    UNREADABLE_FOLDER: "is a folder that cannot be read",
}
# ImageNet holds pictures of these kinds, and loaders cope; whatever else is wrong spoils a training.
TOLERATED_DEFECTS = frozenset({CMYK, NOT_JPEG})
TOLERATED_IN_SET = TOLERATED_DEFECTS | {MISLABELLED}
KEEPABLE = frozenset({*PICTURE_DEFECTS, MISLABELLED}) - {EMPTY, UNKNOWN}


class PictureDefect(NamedTuple):
    """One picture, or one folder, and all that is wrong with it; `note` says more."""

    name: str
    codes: tuple[str, ...]
    tolerated: bool = False
    note: str = ""

    def __str__(self) -> str:
        words = " and ".join(ALL_DEFECTS[code] for code in self.codes)
        return f"{self.name} {words}{f' ({self.note})' if self.note else ''}"


@dataclass(frozen=True)
class PictureHeader:
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


def picture_header(data: bytes) -> PictureHeader:
    """The header of the picture; of the format `other` where it is none that we know."""
    if data.startswith(JPEG_START):
        return jpeg_header(data)
    if data.startswith(PNG_START):
        return png_header(data)
    format = rare_format(data)
    return rare_header(data, format) if format else PictureHeader("other")


def picture_defects(data: bytes, header: PictureHeader | None = None) -> list[str]:
    """Codes of all that is unusual in these bytes, the worst first; none for a sound JPEG."""
    if not data:
        return [EMPTY]
    header = header or picture_header(data)
    if header.format == "other":
        return [UNKNOWN]
    conditions = {
        TRUNCATED: not header.whole,
        NO_SIZE: header.whole and not (header.width > 0 and header.height > 0),
        ONE_PIXEL: header.width == header.height == 1,
        ANIMATED: header.frames > 1,
        DEEP: header.bits > 8,
        NOT_JPEG: header.format != "jpeg",
        CMYK: header.cmyk,
    }
    return [code for code, holds in conditions.items() if holds]


def _number(data: bytes, at: int, size: int) -> int:
    """The number there, high byte first; bytes behind the end count as none."""
    return int.from_bytes(data[at : at + size], "big")


JPEG_START = b"\xff\xd8\xff"
JPEG_END = b"\xff\xd9"
SCAN = 0xDA
# Start of frame, every coding process; C4, C8 and CC lie between them and are something else.
FRAMES = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}
# These stand alone: restart marks, the start and TEM have no length.
ALONE = frozenset([*range(0xD0, 0xD9), 0x01])
NOT_FILL = re.compile(rb"[^\xff]")


def jpeg_header(data: bytes) -> PictureHeader:
    width = height = components = bits = 0
    at = 2
    while (next_marker := _marker(data, at)) is not None:
        marker, at = next_marker
        if marker in ALONE:
            continue
        length = _number(data, at, 2)
        if marker in FRAMES:
            bits, height, width, components = (
                _number(data, at + offset, size) for offset, size in ((2, 1), (3, 2), (5, 2), (7, 1))
            )
        if marker == SCAN:
            # Within a scan FF is always followed by 00 or a restart mark: FF D9 is the end. A thumbnail's
            # own end mark lies before the scan.
            whole = data.rfind(JPEG_END, at + length) >= 0
            return PictureHeader("jpeg", width, height, components, bits, 1, whole, cmyk=components == 4)
        if length < 2 or marker == JPEG_END[1]:
            break
        at += length
    return PictureHeader("jpeg", width, height, components, bits, 1 if width else 0, cmyk=components == 4)


def _marker(data: bytes, at: int) -> tuple[int, int] | None:
    """The marker at this place and the place behind it; any number of FF may fill the space before."""
    if data[at : at + 1] != b"\xff":
        return None
    match = NOT_FILL.search(data, at)
    return None if match is None or match.group() == b"\x00" else (data[match.start()], match.end())


PNG_START = b"\x89PNG\r\n\x1a\n"
CHUNK_FRAME = 12
# By colour type: grey, RGB, palette, grey with alpha, RGB with alpha.
PNG_COMPONENTS = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}


def png_header(data: bytes) -> PictureHeader:
    width, height = _number(data, 16, 4), _number(data, 20, 4)
    bits, colour = _number(data, 24, 1), _number(data, 25, 1)
    frames, whole, at = 1, False, len(PNG_START)
    while at + CHUNK_FRAME <= len(data):
        length, name = _number(data, at, 4), data[at + 4 : at + 8]
        if name == b"acTL":
            frames = max(1, _number(data, at + 8, 4))
        at += CHUNK_FRAME + length
        if name == b"IEND":
            whole = at <= len(data)
            break
    return PictureHeader("png", width, height, PNG_COMPONENTS.get(colour, 0), bits, frames, whole)


# OS/2's bitmap header, Windows 3's and its four followers; anything else that begins with BM is a text.
BMP_HEADERS = frozenset({12, 40, 52, 56, 64, 108, 124})
TIFF_STARTS = (b"II*\0", b"MM\0*", b"II+\0", b"MM\0+")
BITS = 258
# Offsets and byte counts of strips, and of tiles.
PARTS = ((273, 279), (324, 325))
# A crafted file must not keep us busy or fill the memory: what lies behind these is not decoded.
MOST_FRAMES, MOST_PIXELS = 64, 1 << 24
SILENT = logging.NullHandler()


def rare_format(data: bytes) -> str | None:
    """Return the format that the first bytes tell, without importing Pillow."""
    if data.startswith((b"GIF87a", b"GIF89a")):
        return "gif"
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return "webp"
    if data[:2] == b"BM" and int.from_bytes(data[14:18], "little") in BMP_HEADERS:
        return "bmp"
    return "tiff" if data.startswith(TIFF_STARTS) else None


def rare_header(data: bytes, format: str) -> PictureHeader:
    """Return the header; it is whole where all frames within the limits are."""
    from PIL import Image

    header = PictureHeader(format)
    logging.getLogger("PIL").addHandler(SILENT)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            with Image.open(io.BytesIO(data), formats=[format]) as image:
                header = _header(image, format)
                frames = _check_frames(image, len(data))
        except Exception:  # noqa: BLE001  # of damaged bytes Pillow raises errors of a dozen kinds
            return header
    # Pillow does not miss the trailer of a GIF, without which further frames may be lost.
    whole = format != "gif" or data.rstrip(b"\0").endswith(b";")
    return replace(header, frames=frames, whole=whole)


def _header(image: Image, format: str) -> PictureHeader:
    components = 3 if format == "gif" else len(image.getbands())
    bits = max(_tags(image).get(BITS, (1,))) if format == "tiff" else 8
    return PictureHeader(format, *image.size, components, bits, 1, cmyk=image.mode == "CMYK")


def _check_frames(image: Image, size: int) -> int:
    """Return the number of frames; raise what Pillow raises at the first one that is damaged."""
    pixels = 0
    for frame in range(MOST_FRAMES):
        try:
            image.seek(frame)
        except EOFError:
            return frame
        if image.format == "TIFF":
            _check_strips(_tags(image), size)
            continue
        pixels += image.width * image.height
        if pixels > MOST_PIXELS:
            return frame + 1
        image.load()
    return MOST_FRAMES


def _check_strips(tags: Mapping[int, tuple[int, ...]], size: int) -> None:
    """Raise where a strip or tile lies behind the end; libtiff would decode, but writes to standard error."""
    ends = [
        begin + length
        for offsets, counts in PARTS
        for begin, length in zip(tags.get(offsets, ()), tags.get(counts, ()), strict=True)
    ]
    if max(ends) > size:
        raise EOFError


def _tags(image: Image) -> Mapping[int, tuple[int, ...]]:
    tags: Mapping[int, tuple[int, ...]] = getattr(image, "tag_v2", {})
    return tags
