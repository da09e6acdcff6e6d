"""What is to be made: how many pictures of which classes, how hard, how large."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from trainmark.base.errors import UserError

TRAIN, VAL = "train", "val"
LEVELS = {"easy": 0.0, "medium": 0.5, "hard": 1.0}
SMALLEST, LARGEST = 16, 8192


@dataclass(frozen=True)
class Plan:
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
        if not all(SMALLEST <= side <= LARGEST for side in (self.width, self.height)):
            raise UserError(
                f"a size must be between {SMALLEST} and {LARGEST} pixels, not {self.width}x{self.height}."
            )

    def about(self) -> dict[str, Any]:
        """All that decides over the bytes, in words for dataset.json."""
        return asdict(self)

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


def difficulty_of(text: str) -> float:
    """`easy`, `medium`, `hard`, or a number between them."""
    if text in LEVELS:
        return LEVELS[text]
    try:
        return float(text)
    except ValueError:
        raise UserError(
            f"'{text}' is no difficulty; say easy, medium, hard or a number from 0 to 1."
        ) from None


def size_of(text: str) -> tuple[int, int]:
    """`500x375`."""
    width, _, height = text.lower().replace("×", "x").partition("x")
    if not (width.isdecimal() and height.isdecimal()):
        raise UserError(f"'{text}' is no size; say it as 500x375.")
    return int(width), int(height)
