"""A JPEG that is small and yet not smooth."""

from __future__ import annotations

import io

import numpy as np
from PIL import Image


def picture(width: int, height: int, seed: int = 0, mode: str = "RGB", **options) -> bytes:
    """A JPEG with broad colours and fine noise."""
    random = np.random.default_rng(seed)
    coarse = random.integers(0, 256, (height // 16 + 2, width // 16 + 2, 3)).astype(np.uint8)
    smooth = np.asarray(Image.fromarray(coarse).resize((width, height), Image.BICUBIC), float)
    noisy = (smooth + random.normal(0, 8, smooth.shape)).clip(0, 255).astype(np.uint8)
    buffer = io.BytesIO()
    Image.fromarray(noisy).convert(mode).save(buffer, "JPEG", **{"quality": 90, **options})
    return buffer.getvalue()
