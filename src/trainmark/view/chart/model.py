"""What a chart is made of: marks in panels over one horizontal axis, all of it plain values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from trainmark.view.chart.axis import Axis

TONES = 8
# Series that are shown at first; a legend has the others.
AT_FIRST = 8
Numbers = Sequence["float | None"]


def tone(index: int) -> str:
    """The CSS class of a series' colour; colours come round again, shapes tell those apart."""
    return f"t{index % TONES}"


def shape(index: int) -> str:
    return ("dot", "square", "ring")[index // TONES % 3]


@dataclass(frozen=True)
class Mark:
    """What all marks have: a colour, the series that a legend switches, and whether it is shown at first."""

    tone: str = "t0"
    series: str = ""
    shown: bool = True
    opacity: float = 1.0


@dataclass(frozen=True)
class Line(Mark):
    """Connected points; a missing y leaves a gap. `tip` is a hover text with {x} and {y}, or empty."""

    x: Numbers = ()
    y: Numbers = ()
    name: str = ""
    width: float = 1.5
    dash: bool = False
    tip: str = ""
    buckets: int = 400
    """Into so many stretches of the axis a long line is thinned, each with its lowest and highest point."""


@dataclass(frozen=True)
class Dots(Mark):
    """Single points, each with a hover text; `shape` is dot, square, ring or tick."""

    x: Numbers = ()
    y: Numbers = ()
    texts: Sequence[str] = ()
    name: str = ""
    shape: str = "dot"
    radius: float = 3.5
    references: Sequence[int] = ()
    """Rows of the page's table that say what each dot is, in place of `texts`."""
    links: Sequence[str] = ()
    """Where a click on each dot leads: addresses or anchors of the page."""


@dataclass(frozen=True)
class Bars(Mark):
    """Bars from zero, centred at x and `width` wide in units of the axis, each with a hover text."""

    x: Numbers = ()
    y: Numbers = ()
    texts: Sequence[str] = ()
    name: str = ""
    width: float = 0.8


@dataclass(frozen=True)
class Whiskers(Mark):
    """Intervals from `low` to `high`; at x, or at row y where they lie flat."""

    at: Numbers = ()
    low: Numbers = ()
    high: Numbers = ()
    flat: bool = False
    width: float = 2


@dataclass(frozen=True)
class Band(Mark):
    """The area between two lines over x."""

    x: Numbers = ()
    low: Numbers = ()
    high: Numbers = ()


@dataclass(frozen=True)
class Shade(Mark):
    """A stretch of the horizontal axis, shaded over the whole height."""

    start: float = 0.0
    stop: float = 0.0


@dataclass(frozen=True)
class Rule(Mark):
    """A dashed line across at one value, with its name above."""

    y: float = 0.0
    name: str = ""


@dataclass(frozen=True)
class Label(Mark):
    """A text at a point."""

    x: float = 0.0
    y: float = 0.0
    text: str = ""
    anchor: str = "middle"
    rise: float = 10
    shift: float = 0
    """To the right, in pixels."""


@dataclass(frozen=True)
class Panel:
    """Marks over one vertical axis; `note` is a sentence in the upper corner."""

    y: Axis
    marks: Sequence[Mark]
    height: int = 260
    note: str = ""


@dataclass(frozen=True)
class Chart:
    """Panels above each other over one horizontal axis; `key` names the colours where no legend does."""

    x: Axis
    panels: Sequence[Panel]
    key: Sequence[tuple[str, str]] = field(default_factory=tuple)


@dataclass(frozen=True)
class Figure:
    """One chart under each name of a view that a button shows; `label` is the name to choose it by."""

    label: str
    views: Mapping[str, Chart]


@dataclass(frozen=True)
class Plot:
    """A named place on the page: figures to choose from, and the series that its legend switches."""

    name: str
    figures: Sequence[Figure]
    legend: Sequence[str] = ()
