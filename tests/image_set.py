"""A small set of images that a network can tell apart, written as `trainmark data make` writes them."""

from __future__ import annotations

import io
import json
import zlib
from pathlib import Path

import numpy as np
import pytest

Image = pytest.importorskip("PIL.Image", reason="Pillow is not installed; pip install pillow")

RECORD = [
    ("shard", "<u4"),
    ("begin", "<u8"),
    ("length", "<u4"),
    ("offset", "<u8"),
    ("size", "<u4"),
    ("label", "<i4"),
    ("crc", "<u4"),
]


def make(root: Path, classes: int, train: int, val: int, width: int = 48, height: int = 40) -> Path:
    random = np.random.default_rng(0)
    for split, count in (("train", train), ("val", val)):
        (root / split).mkdir(parents=True)
        names = [f"c{number % classes}/{number:04d}.JPEG" for number in range(count)]
        rows = []
        for number, name in enumerate(names):
            picture = striped(number % classes, classes, width, height, random)
            (root / split / name).parent.mkdir(exist_ok=True)
            (root / split / name).write_bytes(picture)
            rows.append((number, 0, len(picture), 0, len(picture), number % classes, zlib.crc32(picture)))
        np.save(root / split / "index.npy", np.array(rows, RECORD))
        for file in ("shards.txt", "names.txt"):
            (root / split / file).write_text("".join(f"{name}\n" for name in names))
    described = {
        "trainmark_dataset": 1,
        "format": "folder",
        "classes": [f"c{number}" for number in range(classes)],
        "splits": {"train": train, "val": val},
        "about": {},
    }
    (root / "dataset.json").write_text(json.dumps(described))
    return root


def striped(label: int, classes: int, width: int, height: int, random: np.random.Generator) -> bytes:
    """Stripes whose direction is the class, at a random place and in random light."""
    y, x = np.mgrid[0:height, 0:width]
    angle = np.pi * label / classes
    waves = np.sin(0.6 * (x * np.cos(angle) + y * np.sin(angle)) + random.uniform(0, 6))
    pixels = (
        128 + 80 * waves[..., None] + random.normal(0, 10, (height, width, 3)) + random.uniform(-30, 30, 3)
    )
    file = io.BytesIO()
    Image.fromarray(np.clip(pixels, 0, 255).astype(np.uint8)).save(file, "JPEG", quality=90)
    return file.getvalue()
