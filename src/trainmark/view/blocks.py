"""What a page is made of: blocks of texts and figures that know neither a language nor a medium."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

from trainmark.view.catalogue import Lang
from trainmark.view.chart.model import Plot

Medium = Literal["terminal", "markdown", "html"]
MEDIA: frozenset[Medium] = frozenset({"terminal", "markdown", "html"})


@dataclass(frozen=True)
class Span:
    """A text, or several, with a look and where a click on it leads.

    A look is a class of the style sheet, `code`, `strong`, or `markdown` for what is Markdown already.
    """

    text: Text
    look: str = ""
    link: str = ""


@dataclass(frozen=True)
class Drawing:
    """An SVG, which only HTML shows; as a block, in a frame of its own."""

    draw: Callable[[Lang], str]


# Of several pieces, one space stands between two.
Text = str | int | float | None | Span | Drawing | Sequence["Text"]


@dataclass(frozen=True)
class Answer:
    """The first sentences of a page, in its head."""

    sentences: Sequence[Text]
    look: str = "quiet"
    """Of all but the first."""


@dataclass(frozen=True)
class Sentence:
    text: Text
    look: str = ""


@dataclass(frozen=True)
class Items:
    """Sentences or short texts, one to a line."""

    items: Sequence[Text]
    look: str = "prose"
    looks: Sequence[str] = ()
    """Of each item."""


@dataclass(frozen=True)
class Table:
    """Header and rows of cells, None for an empty one; `notes` stand right below.

    The columns `right` hold numbers. `most` says how many rows a medium shows.
    """

    header: Sequence[Text]
    rows: Sequence[Sequence[Text]]
    right: frozenset[int] = frozenset()
    most: Mapping[Medium, int] = field(default_factory=dict)
    notes: Sequence[Text] = ()
    sortable: bool = True
    look: str = ""
    looks: Mapping[int, str] = field(default_factory=dict)
    """Of the cells of some columns."""


@dataclass(frozen=True)
class LargeTable:
    """A table of thousands of rows, of which a page's script makes those that are asked for.

    `data` has the distinct cells of each column once, and of each row their numbers.
    """

    name: str
    header: Sequence[str]
    data: Mapping[str, Any]
    right: frozenset[int]
    example: str
    without_script: Text


@dataclass(frozen=True)
class Facts:
    """Names and their values."""

    facts: Sequence[tuple[Text, Text]]


@dataclass(frozen=True)
class Chart:
    """A plot with a sentence below; `choose` and `legend` name what is chosen and what is switched.

    Where its figures stand `beside` each other they share a key; else one is shown at a time.
    """

    plot: Plot
    note: str
    choose: str = ""
    legend: str = ""
    at_first: int = 8
    beside: bool = False


@dataclass(frozen=True)
class Code:
    """Text to copy, such as a command."""

    text: str
    language: str = "text"


@dataclass(frozen=True)
class Section:
    """Blocks under a title, which may be empty; a folded one is opened by a click."""

    title: Text
    blocks: Sequence[Block]
    only: frozenset[Medium] = MEDIA
    look: str = ""
    id: str = ""
    folded: bool = False


Block = Answer | Sentence | Items | Table | LargeTable | Facts | Chart | Drawing | Code | Section


@dataclass(frozen=True)
class Page:
    """What one subject says."""

    title: str
    blocks: Sequence[Block]


class Late(Sequence["Block"]):
    """Blocks that are made when a medium shows them."""

    def __init__(self, make: Callable[[], Iterable[Block]]) -> None:
        self.make = make

    @cached_property
    def blocks(self) -> tuple[Block, ...]:
        return tuple(self.make())

    def __len__(self) -> int:
        return len(self.blocks)

    def __getitem__(self, place: Any) -> Any:
        return self.blocks[place]


def only(medium: Medium, *blocks: Block) -> Section:
    """Blocks that one medium alone shows."""
    return Section("", blocks, frozenset({medium}))


def only_late(medium: Medium, make: Callable[[], Iterable[Block]]) -> Section:
    return Section("", Late(make), frozenset({medium}))


def without(medium: Medium, *blocks: Block) -> Section:
    """Blocks that one medium does not show."""
    return Section("", blocks, MEDIA - {medium})


def shown_in(blocks: Sequence[Block], medium: Medium) -> list[Block]:
    """Return the blocks that a medium shows, those of untitled sections among the others."""
    shown: list[Block] = []
    for block in blocks:
        if not isinstance(block, Section):
            shown.append(block)
        elif medium in block.only:
            bare = not (block.title or block.look or block.id)
            shown += shown_in(block.blocks, medium) if bare else [block]
    return shown


def plain_text(text: Text) -> str:
    """Return the text alone, without looks and drawings."""
    if text is None or isinstance(text, Drawing):
        return ""
    if isinstance(text, (str, int, float)):
        return str(text)
    if isinstance(text, Span):
        return plain_text(text.text)
    return " ".join(filter(None, map(plain_text, text)))
