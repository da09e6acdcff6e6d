"""What a plot is to the page: one or more figures to choose from, each with its views."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from math import isfinite
from typing import Any

from trainmark.visible import one_line

TONES = 8
AT_FIRST = 8
LONGEST_NAME = 56


@dataclass(frozen=True)
class Figure:
    """One plotly figure; each view is a change to its layout that a button applies."""

    label: str
    data: list[dict[str, Any]]
    layout: dict[str, Any]
    views: dict[str, dict[str, Any]]


@dataclass(frozen=True)
class Plot:
    """A named place on the page, its height in pixels, and the series its legend can switch."""

    name: str
    height: int
    figures: list[Figure]
    legend: list[str]


def tone(index: int) -> str:
    """The CSS variable of a series' colour; colours come round again, symbols tell those apart."""
    return f"--tone-{index % TONES}"


def symbol(index: int) -> str:
    return ("circle", "square", "diamond", "triangle-up", "x")[index // TONES % 5]


def short(value: float | None) -> float | None:
    """Six digits: more than a screen can show, and half the file."""
    return None if value is None or not isfinite(value) else float(f"{value:.6g}")


def name(text: str, longest: int = LONGEST_NAME) -> str:
    """A name from outside, as written (Plotly would read tags as markup), cut before it crowds the plot."""
    line = one_line(text)
    return escape(line if len(line) <= longest else line[: longest - 1] + "…", quote=False)
