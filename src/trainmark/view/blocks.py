"""What a page is made of: blocks of texts and figures that know neither a language nor a medium."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
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


@dataclass(frozen=True)
class Bar:
    """A thin bar, which only HTML shows: the share of 1 that each part takes, by its look.

    It is as wide as its column, a `meter` with one part as well.
    """

    parts: Sequence[tuple[str, float]]
    look: str = "parts"


@dataclass(frozen=True)
class DoubtMark:
    """A raised number that refers to a doubt of the page; a terminal has none."""

    number: int
    severity: str
    name: str


# Of several pieces, one space stands between two.
Text = str | int | float | None | Span | Drawing | Bar | DoubtMark | Sequence["Text"]


@dataclass(frozen=True)
class Answer:
    """The first sentences of a page, in its head."""

    sentences: Sequence[Text]
    look: str = "quiet"
    """Of all but the first."""


@dataclass(frozen=True)
class Sentence:
    """A paragraph; as a `verdict` it is set off in every medium that can."""

    text: Text
    look: str = ""


@dataclass(frozen=True)
class Headline:
    """One figure in large print, with what it is of above and its bounds below."""

    figure: str
    unit: Text
    below: Sequence[Text]
    of: Text = ""


@dataclass(frozen=True)
class Headlines:
    """The few figures to read first, which only HTML sets in large print."""

    figures: Sequence[Headline]
    label: str


@dataclass(frozen=True)
class Doubt:
    """What is to be doubted, by the number under which the page's tables refer to it."""

    mark: DoubtMark
    severity_name: str
    sentences: Sequence[str]


@dataclass(frozen=True)
class Doubts:
    doubts: Sequence[Doubt]


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
    title: str = ""


@dataclass(frozen=True)
class Charts:
    """Plots whose series one legend switches; `series` tells it from the other legends of the page."""

    charts: Sequence[Chart]
    names: Sequence[str]
    legend: str
    series: str = ""
    at_first: int = 8


@dataclass(frozen=True)
class Code:
    """Text to copy, such as a command."""

    text: str
    language: str = "text"


@dataclass(frozen=True)
class Advice:
    """One thing to do: a sentence, and below it a line to copy or words."""

    text: Text
    how: str = ""
    is_line: bool = True


@dataclass(frozen=True)
class Advices:
    """Things to do, numbered."""

    advices: Sequence[Advice]


@dataclass(frozen=True)
class Segment:
    """A part of a stacked bar, `width` the share of 1 that it takes, in a colour of the style sheet."""

    look: str
    width: float
    name: str
    share: str
    amount: str


@dataclass(frozen=True)
class Stack:
    """A bar across the page, divided into its parts, which only HTML shows."""

    segments: Sequence[Segment]
    label: str
    look: str = ""


@dataclass(frozen=True)
class BarRow:
    """A bar from `start`, `width` long, both as shares of 1, the first `solid` of it in full colour."""

    name: str
    look: str
    start: float
    width: float
    text: Text
    solid: float = 1.0
    is_end: bool = False


@dataclass(frozen=True)
class Bars:
    """Bars on one axis, one below the other, which only HTML shows."""

    rows: Sequence[BarRow]
    label: str


@dataclass(frozen=True)
class Timeline:
    """Spans in lanes, to move and to zoom, which only HTML shows.

    A class has a name and a colour. `spans` are five numbers each: lane, name, class, start (counted from
    the start of the span before) and length; `steps` are starts and ends, all in nanoseconds.
    """

    lanes: Sequence[str]
    names: Sequence[str]
    classes: Sequence[tuple[str, str]]
    steps: Sequence[tuple[int, int]]
    spans: Sequence[int]
    label: str


@dataclass(frozen=True)
class Section:
    """Blocks under a title, which may be empty; a folded one is opened by a click."""

    title: Text
    blocks: Sequence[Block]
    only: frozenset[Medium] = MEDIA
    look: str = ""
    id: str = ""
    folded: bool = False


Block = (
    Answer
    | Sentence
    | Headlines
    | Doubts
    | Items
    | Table
    | LargeTable
    | Facts
    | Chart
    | Charts
    | Drawing
    | Code
    | Advices
    | Stack
    | Bars
    | Timeline
    | Section
)


@dataclass(frozen=True)
class Page:
    """What one subject says; HTML has the `heading` in large print, and the title and `about` above it.

    Without a heading the title is in large print. `style` names a style sheet of the page's own.
    """

    title: str
    blocks: Sequence[Block]
    heading: Text = ""
    about: str = ""
    foot: Text = ""
    style: str = ""


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
    if text is None or isinstance(text, (Drawing, Bar, DoubtMark)):
        return ""
    if isinstance(text, (str, int, float)):
        return str(text)
    if isinstance(text, Span):
        return plain_text(text.text)
    return " ".join(filter(None, map(plain_text, text)))


def text_columns(table: Table) -> Table:
    """Return the table for a medium that cannot draw: without the columns that hold nothing but drawings."""
    drawn = {
        place
        for place, cells in enumerate(zip(*table.rows, strict=True))
        if any(isinstance(cell, (Bar, Drawing)) for cell in cells) and not any(map(plain_text, cells))
    }
    if not drawn:
        return table
    places = [place for place in range(len(table.header)) if place not in drawn]
    right = frozenset(new for new, old in enumerate(places) if old in table.right)
    rows = [[row[place] for place in places] for row in table.rows]
    return replace(table, header=[table.header[place] for place in places], rows=rows, right=right)
