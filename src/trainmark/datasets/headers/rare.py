"""BMP, GIF, TIFF and WebP, rare in a training set: Pillow reads them and decodes all but TIFF."""

from __future__ import annotations

import io
import logging
import warnings
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from trainmark.datasets.headers.header import Header, little

if TYPE_CHECKING:
    from PIL.Image import Image

# OS/2's bitmap header, Windows 3's and its four followers; anything else that begins with BM is a text.
BMP_HEADERS = frozenset({12, 40, 52, 56, 64, 108, 124})
TIFF_STARTS = (b"II*\0", b"MM\0*", b"II+\0", b"MM\0+")
BITS = 258
# Offsets and byte counts of strips, and of tiles.
PARTS = ((273, 279), (324, 325))
# A crafted file must not keep us busy or fill the memory: what lies behind these is not decoded.
MOST_FRAMES, MOST_PIXELS = 64, 1 << 24
SILENT = logging.NullHandler()


def format_of(data: bytes) -> str | None:
    """Return the format that the first bytes tell, without importing Pillow."""
    if data.startswith((b"GIF87a", b"GIF89a")):
        return "gif"
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return "webp"
    if data[:2] == b"BM" and little(data, 14, 4) in BMP_HEADERS:
        return "bmp"
    return "tiff" if data.startswith(TIFF_STARTS) else None


def look(data: bytes, format: str) -> Header:
    """Return the header; it is whole where all frames within the limits are."""
    from PIL import Image

    header = Header(format)
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


def _header(image: Image, format: str) -> Header:
    components = 3 if format == "gif" else len(image.getbands())
    bits = max(_tags(image).get(BITS, (1,))) if format == "tiff" else 8
    return Header(format, *image.size, components, bits, 1, cmyk=image.mode == "CMYK")


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
