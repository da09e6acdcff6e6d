"""One picture: outlines of a class, cut from its texture, scattered over a background of something else.

Layers are drawn as bytes: two bits say which layer a pixel belongs to, six how bright its texture is there; a
table then gives each its brightness and colour. Colours are drawn for each picture: they tell no class.
"""

from __future__ import annotations

import io
import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from trainmark.datasets.make.hardship import Hardship
from trainmark.datasets.make.outlines import Outline, placed
from trainmark.datasets.make.sizes import jpeg_quality, picture_size
from trainmark.datasets.make.textures import SIDE
from trainmark.datasets.make.weather import Weather, weathered

Bytes = npt.NDArray[np.uint8]
GROUND, CLASS, CLUTTER, RIM = range(4)
LAYERS, LEVELS = 4, 64
# A tile of texture covers this share of the shorter side, within a factor drawn for each picture.
TILE_SHARE, TILE_FACTOR = 0.5, 1.25
CLUTTER_SIZE = (0.05, 0.16)
RIM_SIZE = 1.07


@dataclass(frozen=True)
class Kind:
    """A class: what it is cut to and cut from."""

    outline: Outline
    tile: Bytes


@dataclass(frozen=True)
class Props:
    """What all pictures of a set share: foreign outlines and textures, and the weather."""

    outlines: tuple[Outline, ...]
    tiles: tuple[Bytes, ...]
    weather: Weather


def jpeg(
    random: np.random.Generator, kind: Kind, props: Props, hardship: Hardship, size: tuple[int, int]
) -> bytes:
    """The bytes of one picture; the same generator gives the same."""
    width, height = picture_size(random, *size)
    quality = jpeg_quality(random)
    layers = _layers(random, kind, props, hardship, width, height)
    luma, blue, red = _coloured(random, layers, hardship)
    return _encoded([weathered(random, luma, props.weather), blue, red], quality)


def _layers(
    random: np.random.Generator, kind: Kind, props: Props, hardship: Hardship, width: int, height: int
) -> Bytes:
    other = props.tiles[int(random.integers(len(props.tiles)))]
    layer = _mask(random, kind, props, hardship, width, height)
    own, ground = (_places(random, width, height, most) for most in (hardship.turn, 1.0))
    # Both tiles in one table: one look-up a pixel.
    places = np.where(layer == CLASS, own, ground + np.uint32(SIDE * SIDE))
    levels: Bytes = np.take(np.concatenate([kind.tile.ravel(), other.ravel()]), places)
    levels >>= 2
    levels |= layer << 6
    return levels


def _mask(
    random: np.random.Generator, kind: Kind, props: Props, hardship: Hardship, width: int, height: int
) -> Bytes:
    from PIL import Image, ImageDraw

    short = min(width, height)
    mask = Image.new("L", (width, height), GROUND)
    pen = ImageDraw.Draw(mask)

    def scatter(outline: Outline, sizes: tuple[float, float], fills: tuple[tuple[float, int], ...]) -> None:
        x, y = random.uniform(0.1, 0.9) * width, random.uniform(0.1, 0.9) * height
        size, turn = random.uniform(*sizes) * short, _turn(random, hardship.turn)
        for factor, fill in fills:
            pen.polygon(placed(outline, x, y, size * factor, turn), fill=fill)

    for _ in range(int(random.integers(hardship.objects[0], hardship.objects[1] + 1))):
        hole = kind.outline.hole
        fills = ((RIM_SIZE, RIM), (1.0, CLASS), (hole * RIM_SIZE, RIM), (hole, GROUND))
        scatter(kind.outline, hardship.object_size, fills if hole else fills[:2])
    for _ in range(hardship.clutter):
        foreign = props.outlines[int(random.integers(len(props.outlines)))]
        scatter(foreign, CLUTTER_SIZE, ((1.0, CLUTTER),))
    return np.asarray(mask)


def _places(random: np.random.Generator, width: int, height: int, most: float) -> npt.NDArray[np.uint32]:
    """Where in a tile each pixel lies when the tile is turned, scaled and repeated over the whole picture.

    Places are counted in 1/65536 of the tile's side, so that 16-bit numbers wrap round where it does.
    """
    side = min(width, height) * TILE_SHARE * TILE_FACTOR ** random.uniform(-1, 1)
    turn = _turn(random, most)
    cos, sin = np.cos(turn) * 65536 / side, np.sin(turn) * 65536 / side
    x, y = np.arange(width), np.arange(height)
    first, second = random.integers(65536, size=2).tolist()

    def ramp(across: float, down: float, begin: int) -> npt.NDArray[np.uint16]:
        along = np.rint(across * x + begin).astype(np.int64).astype(np.uint16)
        below = np.rint(down * y).astype(np.int64).astype(np.uint16)
        summed: npt.NDArray[np.uint16] = along[None, :] + below[:, None]
        return summed

    down, across = ramp(sin, cos, first), ramp(cos, -sin, second)
    down &= 0xFF00
    across >>= 8
    down |= across
    return down.astype(np.uint32)


def _turn(random: np.random.Generator, most: float) -> float:
    return random.uniform(-most, most) * math.pi


def _coloured(random: np.random.Generator, layers: Bytes, hardship: Hardship) -> list[Bytes]:
    """Luma and two chroma planes: each layer has a mean colour, and its texture sways about it."""
    steps = (np.arange(LEVELS) - (LEVELS - 1) / 2) / (LEVELS / 2)
    means = random.uniform((96, 104, 104), (160, 152, 152), (LAYERS, 3))
    sways = random.uniform(0.8, 1.2, (LAYERS, 3))
    sways[:, 1:] *= random.choice([-1.0, 1.0], (LAYERS, 2))
    sways *= hardship.contrast * np.array([1.5, 0.25, 0.25])
    sways[GROUND] *= hardship.ground
    table = means[:, None, :] + sways[:, None, :] * steps[None, :, None]
    rounded = np.clip(np.rint(table), 0, 255).astype(np.uint8).reshape(LAYERS * LEVELS, 3)
    return [_translated(layers, rounded[:, plane]) for plane in range(3)]


def _translated(values: Bytes, table: Bytes) -> Bytes:
    """table[values]; bytes have the fastest look-up there is."""
    translated = values.tobytes().translate(table.tobytes())
    return np.frombuffer(translated, np.uint8).reshape(values.shape)


def _encoded(planes: list[Bytes], quality: int) -> bytes:
    from PIL import Image

    picture = Image.merge("YCbCr", [Image.fromarray(plane) for plane in planes])
    file = io.BytesIO()
    picture.save(file, "JPEG", quality=quality, subsampling=0)
    return file.getvalue()
