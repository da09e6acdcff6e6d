"""Pictures of every kind that a set may hold, as bytes."""

import io

import numpy as np
from PIL import Image


def encoded(kind, mode="RGB", size=(24, 16), **options):
    file = io.BytesIO()
    noise = np.random.default_rng(0).integers(0, 256, (size[1], size[0], 3)).astype(np.uint8)
    Image.fromarray(noise).convert(mode).save(file, kind, **options)
    return file.getvalue()


def animated(kind, frames=3):
    file = io.BytesIO()
    pictures = [Image.new("RGB", (24, 16), (80 * number, 10, 10)) for number in range(frames)]
    pictures[0].save(file, kind, save_all=True, append_images=pictures[1:])
    return file.getvalue()


def deep_png():
    file = io.BytesIO()
    Image.fromarray(np.arange(384, dtype=np.uint16).reshape(16, 24)).save(file, "PNG")
    return file.getvalue()
