"""Images whose pixels say where they are: red grows with x, green with y, blue tells the shape.

From what any loader gives for one, the box that it cut and whether it flipped are read back. Every image is
a class of its own: its label names it. numpy only where it reads: frameworks' interpreters import this too.
"""

from __future__ import annotations

import io
import zlib
from pathlib import Path

import numpy as np

LONG, SHORT = 96, 72
LANDSCAPE, PORTRAIT = 64, 192  # blue


def make(root: Path, train: int, val: int) -> Path:
    """A set in the format `folder`."""
    from trainmark.data.files import RECORD, ImageDataset, SplitIndex, write_dataset, write_index

    classes = tuple(f"c{number:04d}" for number in range(max(train, val)))
    encoded = [encode(LONG, SHORT, LANDSCAPE), encode(SHORT, LONG, PORTRAIT)]
    for split, count in {"train": train, "val": val}.items():
        rows, names = np.zeros(count, RECORD), []
        for number in range(count):
            data = encoded[number % 2]
            names.append(f"{classes[number]}/{split}{number}.JPEG")
            rows[number] = (number, 0, len(data), 0, len(data), number, zlib.crc32(data))
            path = root / split / names[-1]
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
        write_index(root / split, SplitIndex(rows, tuple(names), tuple(names)))
    write_dataset(root, ImageDataset("folder", classes, {"train": train, "val": val}))
    return root


def encode(width: int, height: int, blue: int) -> bytes:
    from PIL import Image

    pixels = np.empty((height, width, 3))
    pixels[..., 0] = (np.arange(width) + 0.5) / width * 255
    pixels[..., 1] = ((np.arange(height) + 0.5) / height * 255)[:, None]
    pixels[..., 2] = blue
    buffer = io.BytesIO()
    Image.fromarray(pixels.round().astype(np.uint8)).save(buffer, "JPEG", quality=98, subsampling=0)
    return buffer.getvalue()


def boxes(images: np.ndarray) -> np.ndarray:
    """(n, size, size, 3) values of 0 to 255 to rows of left, top, width, height as parts of the image,
    flip, portrait."""
    across, left = lines(images[..., 0].mean(axis=1))
    down, top = lines(images[..., 1].mean(axis=2))
    portrait = images[..., 2].mean(axis=(1, 2)) > (LANDSCAPE + PORTRAIT) / 2
    flip = across < 0
    left = np.where(flip, left + across, left)
    return np.stack([left, top, abs(across), down, flip, portrait], axis=1)


def lines(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The straight line through the middle of each row of values: its rise over the row, its beginning."""
    size = values.shape[1]
    middle = slice(size // 4, size - size // 4)
    at = (np.arange(size) + 0.5) / size
    rise, begin = np.polyfit(at[middle], values[:, middle].T / 255, 1)
    return rise, begin
