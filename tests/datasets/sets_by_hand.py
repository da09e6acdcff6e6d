"""Small sets in class folders, and the damage that tests do to them."""

import io
import random

import numpy as np
from PIL import Image


def jpeg(seed, size=(24, 16), mode="RGB"):
    file = io.BytesIO()
    noise = np.random.default_rng(seed).integers(0, 256, (size[1], size[0], 3)).astype(np.uint8)
    Image.fromarray(noise).convert(mode).save(file, "JPEG")
    return file.getvalue()


def folder_set(root, classes=3, train=4, val=1):
    """SPLIT/CLASS/NAME.JPEG without any file of ours."""
    seed = 0
    for split, count in (("train", train), ("val", val)):
        for label in range(classes):
            for number in range(count):
                path = root / split / f"n{label:02d}" / f"{split}{number}.JPEG"
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(jpeg(seed, (24 + seed, 16 + label)))
                seed += 1
    return root


def flip(path, position):
    """One bit, anywhere."""
    with path.open("r+b") as file:
        file.seek(position)
        (byte,) = file.read(1)
        file.seek(position)
        file.write(bytes([byte ^ 1 << random.Random(position).randrange(8)]))


def positions(length, count, seed):
    """The ends, and places between them."""
    drawn = random.Random(seed).sample(range(length), min(count, length))
    return sorted({0, length - 1, *drawn})
