"""What the bytes of a picture say of it: JPEG, PNG, and rare formats by Pillow; nothing raises."""

from __future__ import annotations

import io
import logging
import re
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from PIL.Image import Image


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


def big(data: bytes, at: int, size: int) -> int:
    """The number there, high byte first; bytes behind the end count as none."""
    return int.from_bytes(data[at : at + size], "big")


def little(data: bytes, at: int, size: int) -> int:
    return int.from_bytes(data[at : at + size], "little")


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
        length = big(data, at, 2)
        if marker in FRAMES:
            bits, height, width = (
                data[at + 2] if at + 2 < len(data) else 0,
                big(data, at + 3, 2),
                big(data, at + 5, 2),
            )
            components = data[at + 7] if at + 7 < len(data) else 0
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
    width, height = big(data, 16, 4), big(data, 20, 4)
    bits, colour = big(data, 24, 1), big(data, 25, 1)
    frames, whole, at = 1, False, len(PNG_START)
    while at + CHUNK_FRAME <= len(data):
        length, name = big(data, at, 4), data[at + 4 : at + 8]
        if name == b"acTL":
            frames = max(1, big(data, at + 8, 4))
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
    if data[:2] == b"BM" and little(data, 14, 4) in BMP_HEADERS:
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
