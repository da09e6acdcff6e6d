"""Blocks as lines for a terminal, as wide as it is; without a width nothing is cut or wrapped."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from rich.cells import cell_len, set_cell_size

from trainmark.base.text import one_line, visible
from trainmark.view.blocks import (
    Advice,
    Advices,
    Answer,
    Block,
    Code,
    Doubts,
    Facts,
    Items,
    Page,
    Section,
    Sentence,
    Table,
    Text,
    plain_text,
    shown_in,
    text_columns,
)
from trainmark.view.catalogue import Lang, localized
from trainmark.view.message import _

GAP, INDENT, HANGING = "  ", "    ", "  "
BELOW = "     "
NARROWEST = 14  # enough for `NVIDIA H100…`
ELLIPSIS = "…"
NUMBER_AT_END = re.compile(r"[\d.,]+$")
# A line may be broken on either side of a Chinese character, but not before closing marks, behind opening
# ones, or in short brackets.
OPENING, CLOSING, WIDE = "（“《", "），。；：、！？”》…", "\u2e80-\uffef"
PIECE = re.compile(rf"\s*[{OPENING}]*(?:\[[^]]{{,40}}\]|[^\s{WIDE}]+|[{WIDE}])[{CLOSING}]*")


def render(page: Page, lang: Lang = "en", width: int | None = None) -> str:
    """Return the page without its title, which the command has said."""
    return "\n".join(lines(page.blocks, lang, width)) + "\n"


def lines(blocks: Sequence[Block], lang: Lang = "en", width: int | None = None) -> list[str]:
    shown = localized(shown_in(blocks, "terminal"), lang)
    return _lines(shown, lang, width)


def _lines(blocks: Sequence[Block], lang: Lang, width: int | None, level: int = 1) -> list[str]:
    """Sentences follow one another, and a caption's table follows it; around all else lies an empty line."""
    written: list[str] = []
    text_before = joins = False
    for block in blocks:
        own = _block(block, lang, width, level)
        is_text = isinstance(block, (Answer, Sentence, Items))
        if own and written and not (joins or (is_text and text_before)):
            written.append("")
        written += own
        if own:
            text_before = is_text
            joins = isinstance(block, Sentence) and block.look == "caption"
    return written


def _block(block: Block, lang: Lang, width: int | None, level: int) -> list[str]:
    if isinstance(block, Sentence):
        return sentence(block.text, width)
    if isinstance(block, (Answer, Items)):
        texts = block.sentences if isinstance(block, Answer) else block.items
        return [line for text in texts for line in sentence(text, width)]
    if isinstance(block, Table):
        return _table(block, lang, width)
    if isinstance(block, Doubts):
        return [
            line
            for doubt in block.doubts
            for said in doubt.sentences
            for line in sentence(f"! {doubt.mark.name}: {said}", width)
        ]
    if isinstance(block, Facts):
        return _facts(block, width)
    if isinstance(block, Code):
        return [f"{INDENT}{line}" for line in visible(block.text).splitlines()]
    if isinstance(block, Advices):
        return [
            line for place, advice in enumerate(block.advices, 1) for line in _advice(place, advice, width)
        ]
    if isinstance(block, Section):
        return _section(block, lang, width, level)
    return []


def _facts(block: Facts, width: int | None) -> list[str]:
    """Names in a column of their own, and values wrapped beside it."""
    named = [(f"{plain_text(name)}:" if name else "", plain_text(value)) for name, value in block.facts]
    room = max((cell_len(name) for name, _value in named), default=0) + len(GAP)
    written = []
    for name, value in named:
        label = name + " " * (room - cell_len(name))
        written += [line.rstrip() for line in wrapped(value, width, label, " " * room)]
    return written


def _advice(place: int, advice: Advice, width: int | None) -> list[str]:
    """What is to be typed is never broken."""
    own = wrapped(plain_text(advice.text), width, f"{place}. ", "   ")
    if not advice.is_line:
        return [*own, *wrapped(advice.how, width, BELOW, BELOW)]
    return [*own, *(f"{BELOW}{one_line(line)}" for line in advice.how.splitlines() if line.strip())]


def _section(section: Section, lang: Lang, width: int | None, level: int) -> list[str]:
    indent = HANGING if level > 1 else ""
    room = width - len(indent) if width else None
    inside = _lines(shown_in(section.blocks, "terminal"), lang, room, level + 1)
    if not section.title:
        return inside
    return [*sentence(section.title, width), *(indent + line if line else "" for line in inside)]


def _table(block: Table, lang: Lang, width: int | None) -> list[str]:
    block = text_columns(block)
    most = block.most.get("terminal", len(block.rows))
    more = len(block.rows) - most
    left_out = [localized(_("… and {more} more", more=f"{more:,}"), lang)] if more > 0 else []
    notes = [line for note in block.notes for line in sentence(note, width)]
    shown = Table(block.header, block.rows[:most], block.right) if left_out else block
    return [*table(shown, width), *left_out, *notes]


def sentence(text: Text, width: int | None = None) -> list[str]:
    return wrapped(plain_text(text), width, later=HANGING)


def wrapped(text: str, width: int | None = None, first: str = "", later: str = "") -> list[str]:
    """Break a sentence into lines, the first and the later ones indented."""
    line = one_line(text)
    return [(first + line)] if width is None else broken(line, width, first, later)


def broken(text: str, width: int, first: str = "", later: str = "") -> list[str]:
    """Break a line between words, or beside Chinese characters; a long word stays whole."""
    if cell_len(first + text) <= width:
        return [first + text]
    written, empty = [first], True
    for piece in PIECE.findall(text):
        if not empty and cell_len(written[-1] + piece) > width:
            written.append(later)
            empty = True
        written[-1] += piece.lstrip() if empty else piece
        empty = False
    return written


def table(block: Table, width: int | None = None) -> list[str]:
    """Return aligned columns; one that is empty throughout takes no room, nor does an empty header.

    In a terminal of `width` columns, text is cut, and if that is not enough, the last columns go below.
    """
    rows = [list(map(_cell, row)) for row in ([block.header] if block.header else []) + list(block.rows)]
    columns = list(zip(*rows, strict=True))
    natural = [max(map(cell_len, column)) for column in columns]
    if width is None:
        width = sum(natural) + len(GAP) * len(natural)
    least = [
        natural[place] if place in block.right else _least_width(column)
        for place, column in enumerate(columns)
    ]
    parts: list[tuple[str, list[tuple[int, int]]]] = []
    for number, places in enumerate(_split(least, width)):
        indent = INDENT if number else ""
        widths = _fitted([natural[at] for at in places], [least[at] for at in places], width - len(indent))
        parts.append((indent, list(zip(places, widths, strict=True))))
    below = [[indent + _joined(row, part, block.right) for indent, part in parts] for row in rows]
    return [line for first, *rest in below for line in (first, *filter(str.strip, rest))]


def _cell(value: Text) -> str:
    """One line of visible text; leading spaces stay, because they indent a cell or set it apart."""
    text = plain_text(value)
    return " " * (len(text) - len(text.lstrip(" "))) + one_line(text)


def _joined(row: Sequence[str], part: Sequence[tuple[int, int]], right: frozenset[int]) -> str:
    cells = []
    for place, width in part:
        text = shortened(row[place], width)
        space = " " * (width - cell_len(text))
        cells.append(space + text if place in right else text + space)
    return GAP.join(cells).rstrip()


def _least_width(cells: Iterable[str]) -> int:
    """Return how narrow a column of text may become: numbers in it stay whole."""
    widths = [(cell_len(cell), _is_number(cell)) for cell in cells]
    return max((width if number else min(width, NARROWEST) for width, number in widths), default=0)


def _is_number(text: str) -> bool:
    """Whether digits outweigh letters: `[6,130, 6,173]`, `12.5 ms`, a date; not `rank 3 on node-b`."""
    digits = sum(map(str.isdecimal, text))
    return digits > 0 and digits >= sum(map(str.isalpha, text))


def _split(least: Sequence[int], width: int) -> list[list[int]]:
    """Return the columns of each line: as many as fit, the others on further lines, which are indented."""
    lines: list[list[int]] = [[]]
    room = width
    for column, needed in enumerate(least):
        if not needed:
            continue
        if lines[-1] and needed > room:
            lines.append([])
            room = width - len(INDENT)
        lines[-1].append(column)
        room -= needed + len(GAP)
    return lines


def _fitted(widths: Sequence[int], least: Sequence[int], width: int) -> list[int]:
    """Narrow the widest columns until the line fits, none below its least width."""
    room = width - len(GAP) * (len(widths) - 1)
    narrowed = [max(needed, min(natural, room)) for natural, needed in zip(widths, least, strict=True)]
    while sum(narrowed) > room:
        spare = [column for column, needed in enumerate(least) if narrowed[column] > needed]
        if not spare:
            break
        narrowed[max(spare, key=narrowed.__getitem__)] -= 1
    return narrowed


def shortened(text: str, width: int) -> str:
    """Cut the text to the width, with an ellipsis; a number on the edge goes as a whole."""
    if cell_len(text) <= width:
        return text
    start = set_cell_size(text, width - 1)
    if not text.startswith(start):  # half of a wide character became a space
        start = start[:-1]
    if NUMBER_AT_END.match(text[len(start)]):
        start = NUMBER_AT_END.sub("", start)
    return start.rstrip() + ELLIPSIS
