"""The pictures of a stand-in for ImageNet: how many, how hard, how large, and one of them drawn.

A picture is outlines of a class, cut from its texture, scattered over a background of something else.
Classes are told apart by outline and texture, never by color.

Layers are drawn as bytes: two bits say which layer a pixel belongs to, six how bright its texture is
there; a table then gives each its brightness and color. Colors are drawn for each picture: they tell no
class.

Sizes are as in ImageNet. The tar of its training pictures has 147.9 GB for 1,281,167 of them: 115 kB each
with a tar's header and padding. Most are 500 × 375 (Flickr's medium size, in 4:3) or 500 × 333 (in 3:2),
lying or standing, some much smaller or larger. The shares below are ours; they give that order.
"""

from __future__ import annotations

import io
import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from trainmark.base.errors import UserError
from trainmark.data.texture import (
    TILE_SIDE,
    Field,
    NoiseFields,
    Outline,
    add_noise,
    levels,
    mix_textures,
    noise_fields,
    outline,
    placed,
    texture,
)

TRAIN, VAL = "train", "val"
DIFFICULTIES = {"easy": 0.0, "medium": 0.5, "hard": 1.0}
MIN_SIDE, MAX_SIDE = 16, 8192


@dataclass(frozen=True)
class PicturePlan:
    """`difficulty` from 0 (easy) to 1 (hard); most pictures are `width` × `height`."""

    classes: int
    images: int
    validation: int
    difficulty: float
    width: int
    height: int
    seed: int

    def __post_init__(self) -> None:
        for what, count in (("images", self.images), ("validation images", self.validation)):
            if 0 < count < self.classes or (count == 0 and what == "images"):
                raise UserError(
                    f"{count} {what} are too few for {self.classes} classes; give at least one a class."
                )
        if not 0 <= self.difficulty <= 1:
            raise UserError(f"the difficulty {self.difficulty:g} is not between 0 and 1.")
        if not all(MIN_SIDE <= side <= MAX_SIDE for side in (self.width, self.height)):
            raise UserError(
                f"a size must be between {MIN_SIDE} and {MAX_SIDE} pixels, not {self.width}x{self.height}."
            )

    @property
    def splits(self) -> dict[str, int]:
        counts = {TRAIN: self.images, VAL: self.validation}
        return {split: count for split, count in counts.items() if count}

    @property
    def class_names(self) -> tuple[str, ...]:
        digits = max(4, len(str(self.classes - 1)))
        return tuple(f"class{number:0{digits}}" for number in range(self.classes))

    def of_class(self, split: str) -> list[int]:
        """How many pictures of each class; where it does not come out even, the first have one more."""
        each, over = divmod(self.splits[split], self.classes)
        return [each + (number < over) for number in range(self.classes)]


def default_validation(images: int, classes: int) -> int:
    """A tenth of the training images, at least one a class."""
    return max(images // 10, classes)


def parse_difficulty(text: str) -> float:
    """`easy`, `medium`, `hard`, or a number between them."""
    if text in DIFFICULTIES:
        return DIFFICULTIES[text]
    try:
        return float(text)
    except ValueError:
        raise UserError(
            f"'{text}' is no difficulty; say easy, medium, hard or a number from 0 to 1."
        ) from None


def parse_size(text: str) -> tuple[int, int]:
    """`500x375`."""
    width, _, height = text.lower().replace("×", "x").partition("x")
    if not (width.isdecimal() and height.isdecimal()):
        raise UserError(f"'{text}' is no size; say it as 500x375.")
    return int(width), int(height)


@dataclass(frozen=True)
class Difficulty:
    """Grey levels, counts, and radii as shares of the shorter side; pairs are the least and the most."""

    likeness: float  # how much of an outline and of a texture all classes have in common
    contrast: float  # of the textures
    ground: float  # contrast of the foreign texture behind, as a share of the class's own
    noise: float  # deviation of the coarse noise
    clutter: int  # foreign outlines laid over the picture
    objects: tuple[int, int]  # outlines of the class
    object_size: tuple[float, float]
    turn: float  # how far outlines and textures are turned to either side, in half turns


def difficulty_settings(difficulty: float) -> Difficulty:
    def between(easy: float, hard: float) -> float:
        return easy + (hard - easy) * difficulty

    return Difficulty(
        likeness=between(0.0, 0.35),
        contrast=between(44.0, 33.0),
        ground=between(0.15, 0.7),
        noise=between(3.0, 12.0),
        clutter=round(between(0, 4)),
        objects=(3, 5),
        object_size=(between(0.28, 0.22), between(0.44, 0.4)),
        turn=between(0.1, 0.4),
    )


WIDTH, HEIGHT = 500, 375
# Aimed at, at 500 × 375; with smaller pictures among them a set comes out near 110 kB.
BYTES = 131_000
# Relative to 500 × 375; the rest has any shape between 9:16 and 16:9.
COMMON_SIZES = (((1.0, 1.0), 0.46), ((0.75, 4 / 3), 0.16), ((1.0, 0.888), 0.16), ((0.666, 4 / 3), 0.06))
OTHER_SCALE = (0.4, 1.45)
# Bytes vary about the mean as a logarithmic normal with this deviation.
SPREAD = 0.4
# JPEG quality and the bytes that our pictures then have at 500 × 375, at any difficulty; found by trying.
# Most of ImageNet has 96, without chroma subsampling.
BYTES_AT = {
    50: 27_000, 60: 30_000, 70: 36_000, 80: 45_000, 85: 53_000, 90: 67_000, 93: 82_000,
    95: 101_000, 96: 117_000, 97: 133_000, 98: 152_000, 99: 186_000, 100: 228_000,
}  # fmt: skip


def picture_size(random: np.random.Generator, width: int, height: int) -> tuple[int, int]:
    """For sets in which most pictures are of this width and height."""
    chosen = random.random()
    across, down = random.random(), random.random()
    for (wide, tall), share in COMMON_SIZES:
        if chosen < share:
            return max(1, round(width * wide)), max(1, round(height * tall))
        chosen -= share
    scale = OTHER_SCALE[0] + (OTHER_SCALE[1] - OTHER_SCALE[0]) * across
    shape = math.exp((2 * down - 1) * math.log(4 / 3))
    return max(1, round(width * scale * shape)), max(1, round(height * scale / shape))


def jpeg_quality(random: np.random.Generator) -> int:
    """The quality that gives a picture about as many bytes as are drawn for it."""
    normal = math.sqrt(-2 * math.log(1 - random.random())) * math.cos(2 * math.pi * random.random())
    wanted = BYTES * math.exp(SPREAD * normal - SPREAD * SPREAD / 2)
    return round(float(np.interp(wanted, list(BYTES_AT.values()), list(BYTES_AT))))


Bytes = npt.NDArray[np.uint8]
GROUND, CLASS, CLUTTER, RIM = range(4)
LAYERS, LEVELS = 4, 64
# A tile of texture covers this share of the shorter side, within a factor drawn for each picture.
TILE_SHARE, TILE_FACTOR = 0.5, 1.25
CLUTTER_SIZE = (0.05, 0.16)
RIM_SIZE = 1.07


@dataclass(frozen=True)
class SharedParts:
    """What all pictures of a set share: foreign outlines and textures, and noise."""

    outlines: tuple[Outline, ...]
    tiles: tuple[Bytes, ...]
    noise: NoiseFields


@dataclass(frozen=True)
class PictureClass:
    """A class: what it is cut to and cut from, among what all classes share."""

    outline: Outline
    tile: Bytes
    shared: SharedParts
    difficulty: Difficulty


def draw_jpeg(random: np.random.Generator, kind: PictureClass, size: tuple[int, int]) -> bytes:
    """The bytes of one picture; the same generator gives the same."""
    width, height = picture_size(random, *size)
    quality = jpeg_quality(random)
    layers = _layers(random, kind, width, height)
    luma, blue, red = _coloured(random, layers, kind.difficulty)
    return _encoded([add_noise(random, luma, kind.shared.noise), blue, red], quality)


def _layers(random: np.random.Generator, kind: PictureClass, width: int, height: int) -> Bytes:
    other = kind.shared.tiles[int(random.integers(len(kind.shared.tiles)))]
    layer = _mask(random, kind, width, height)
    own, ground = (_places(random, width, height, most) for most in (kind.difficulty.turn, 1.0))
    # Both tiles in one table: one look-up a pixel.
    places = np.where(layer == CLASS, own, ground + np.uint32(TILE_SIDE * TILE_SIDE))
    levels: Bytes = np.take(np.concatenate([kind.tile.ravel(), other.ravel()]), places)
    levels >>= 2
    levels |= layer << 6
    return levels


def _mask(random: np.random.Generator, kind: PictureClass, width: int, height: int) -> Bytes:
    from PIL import Image, ImageDraw

    difficulty, short = kind.difficulty, min(width, height)
    mask = Image.new("L", (width, height), GROUND)
    pen = ImageDraw.Draw(mask)

    def scatter(outline: Outline, sizes: tuple[float, float], fills: tuple[tuple[float, int], ...]) -> None:
        x, y = random.uniform(0.1, 0.9) * width, random.uniform(0.1, 0.9) * height
        size, turn = random.uniform(*sizes) * short, _turn(random, difficulty.turn)
        for factor, fill in fills:
            pen.polygon(placed(outline, x, y, size * factor, turn), fill=fill)

    for _ in range(int(random.integers(difficulty.objects[0], difficulty.objects[1] + 1))):
        hole = kind.outline.hole
        fills = ((RIM_SIZE, RIM), (1.0, CLASS), (hole * RIM_SIZE, RIM), (hole, GROUND))
        scatter(kind.outline, difficulty.object_size, fills if hole else fills[:2])
    for _ in range(difficulty.clutter):
        foreign = kind.shared.outlines[int(random.integers(len(kind.shared.outlines)))]
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


def _coloured(random: np.random.Generator, layers: Bytes, difficulty: Difficulty) -> list[Bytes]:
    """Luma and two chroma planes: each layer has a mean colour, and its texture sways about it."""
    steps = (np.arange(LEVELS) - (LEVELS - 1) / 2) / (LEVELS / 2)
    means = random.uniform((96, 104, 104), (160, 152, 152), (LAYERS, 3))
    sways = random.uniform(0.8, 1.2, (LAYERS, 3))
    sways[:, 1:] *= random.choice([-1.0, 1.0], (LAYERS, 2))
    sways *= difficulty.contrast * np.array([1.5, 0.25, 0.25])
    sways[GROUND] *= difficulty.ground
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


# The first word of every generator after the seed: no two are the same.
COMMON_STREAM, SHARED_STREAM, CLASS_STREAM, PICTURE_STREAM = range(4)
SPLIT_NUMBER = {TRAIN: 0, VAL: 1}
FOREIGN = 16
# The deviation of a texture within a byte: little of it is cut off.
DEVIATION = 45.0


def draw_picture(plan: PicturePlan, split: str, label: int, number: int) -> bytes:
    """The JPEG of the `number`-th picture of a class; it does not depend on how many there are."""
    random = np.random.default_rng((plan.seed, PICTURE_STREAM, SPLIT_NUMBER[split], label, number))
    return draw_jpeg(random, _picture_class(plan.seed, plan.difficulty, label), (plan.width, plan.height))


@lru_cache(maxsize=128)
def _picture_class(seed: int, level: float, label: int) -> PictureClass:
    difficulty = difficulty_settings(level)
    random = np.random.default_rng((seed, CLASS_STREAM, label))
    drawn = outline(random, label, difficulty.likeness)
    tile = levels(mix_textures(texture(random, label), _common(seed), difficulty.likeness), DEVIATION)
    return PictureClass(drawn, tile, _shared_parts(seed, difficulty.noise), difficulty)


@lru_cache(maxsize=1)
def _shared_parts(seed: int, noise: float) -> SharedParts:
    random = np.random.default_rng((seed, SHARED_STREAM))
    return SharedParts(
        outlines=tuple(outline(random, number, 0.0) for number in range(FOREIGN)),
        tiles=tuple(levels(texture(random, number), DEVIATION) for number in range(FOREIGN)),
        noise=noise_fields(random, noise),
    )


@lru_cache(maxsize=1)
def _common(seed: int) -> Field:
    return texture(np.random.default_rng((seed, COMMON_STREAM)), 0)
