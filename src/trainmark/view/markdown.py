"""Blocks as GitHub-flavoured Markdown, in which every text reads as itself."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from trainmark.base.text import one_line, visible
from trainmark.view.blocks import (
    Advice,
    Advices,
    Answer,
    Bar,
    Block,
    Code,
    DoubtMark,
    Doubts,
    Drawing,
    Facts,
    Items,
    Page,
    Section,
    Sentence,
    Span,
    Table,
    Text,
    plain_text,
    shown_in,
    text_columns,
)
from trainmark.view.catalogue import Lang, localized
from trainmark.view.message import _


def render(page: Page, lang: Lang = "en") -> str:
    title = plain(localized(page.title, lang))
    return f"# {title}\n\n{fragment(page.blocks, lang)}\n"


def fragment(blocks: Sequence[Block], lang: Lang = "en", level: int = 2) -> str:
    """Return blocks for a page that has a title; sections get headings of this level and below."""
    return _blocks(localized(shown_in(blocks, "markdown"), lang), lang, level)


def _blocks(blocks: Sequence[Block], lang: Lang, level: int) -> str:
    shown = (_block(block, lang, level) for block in shown_in(blocks, "markdown"))
    return "\n\n".join(filter(None, shown))


def _block(block: Block, lang: Lang, level: int) -> str:
    if isinstance(block, Sentence):
        return f"> {inline(block.text)}" if block.look.startswith("verdict") else inline(block.text)
    if isinstance(block, Answer):
        return "\n\n".join(map(inline, block.sentences))
    if isinstance(block, Items):
        if block.look.startswith("lines"):
            return "<br>\n".join(map(inline, block.items))
        return "\n".join(f"- {inline(item)}" for item in block.items)
    if isinstance(block, Doubts):
        return "<br>\n".join(
            f"{inline(doubt.mark)} {plain(f'{doubt.mark.name} ({doubt.severity_name})')}:"
            f" {plain(' '.join(doubt.sentences))}"
            for doubt in block.doubts
        )
    if isinstance(block, Table):
        return _table(block, lang)
    if isinstance(block, Facts):
        return "\n".join("- " + ": ".join(filter(None, map(inline, fact))) for fact in block.facts)
    if isinstance(block, Code):
        return fence(block.text, block.language)
    if isinstance(block, Advices):
        return "\n".join(
            line for place, advice in enumerate(block.advices, 1) for line in _advice(place, advice)
        )
    if isinstance(block, Section):
        inside = _blocks(block.blocks, lang, level + bool(block.title))
        if block.folded:
            return f"<details><summary>{inline(block.title)}</summary>\n\n{inside}\n\n</details>"
        return f"{'#' * level} {inline(block.title)}\n\n{inside}".strip() if block.title else inside
    return ""


def _advice(place: int, advice: Advice) -> Iterator[str]:
    """Yield the sentence, and below it the line to copy, several of them between fences."""
    yield f"{place}. {inline(advice.text)}"
    how = advice.how.strip()
    if not how:
        return
    if not advice.is_line:
        yield f"   {plain(how)}"
    elif "\n" in how:
        yield from ("", *(f"   {line}" for line in fence(how).splitlines()), "")
    else:
        yield f"   {code(how)}"


def _table(block: Table, lang: Lang) -> str:
    block = text_columns(block)
    most = block.most.get("markdown", len(block.rows))
    more = len(block.rows) - most
    left_out = [plain(localized(_("… and {more} more", more=f"{more:,}"), lang))] if more > 0 else []
    shown = Table(block.header, block.rows[:most], block.right)
    return "\n\n".join([table(shown), *left_out, *map(inline, block.notes)])


def table(block: Table) -> str:
    rule = ["---:" if column in block.right else "---" for column in range(len(block.header))]
    header, *rows = [list(map(inline, row)) for row in (block.header, *block.rows)]
    return "\n".join("| " + " | ".join(row) + " |" for row in (header, rule, *rows))


def inline(text: Text) -> str:
    if text is None or isinstance(text, (Bar, Drawing)):
        return ""
    if isinstance(text, DoubtMark):
        return f"<sup>{text.number}</sup>"
    if isinstance(text, (str, int, float)):
        return plain(str(text))
    if isinstance(text, Span):
        if text.look == "markdown":
            return plain_text(text.text)
        inside = inline(text.text)
        return (
            code(plain_text(text.text))
            if text.look == "code"
            else f"**{inside}**"
            if text.look == "strong"
            else inside
        )
    return "".join(
        inline(piece) if isinstance(piece, DoubtMark) else f" {inline(piece)}" for piece in text if piece
    ).strip()


# What Markdown would take for its own; underscores between letters or digits it leaves alone.
SPECIAL = re.compile(r"[\\`*\[\]|~#$]|(?<![A-Za-z0-9_])_+|_+(?![A-Za-z0-9_])")
# Figures in brackets are no link without what a link has behind them.
BOUNDS = re.compile(r"\\\[([−\d][^\[\]\\]*)\\\](?![(:])")


def plain(text: str) -> str:
    """Text that reads as itself: no markup, no HTML, one line."""
    html = one_line(text).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    escaped = SPECIAL.sub(lambda match: "".join(f"\\{character}" for character in match[0]), html)
    return BOUNDS.sub(r"[\1]", escaped)


def code(text: str) -> str:
    """A code span; a bar is escaped because tables split before code is read."""
    inner = one_line(text).replace("|", "\\|")
    ticks = "`" * (_longest_run(inner) + 1)
    pad = " " if inner.startswith("`") or inner.endswith("`") else ""
    return f"{ticks}{pad}{inner}{pad}{ticks}"


def fence(text: str, language: str = "") -> str:
    """A code block whose fence is longer than any run of backticks inside."""
    ticks = "`" * max(3, _longest_run(text) + 1)
    return f"{ticks}{language}\n{visible(text).rstrip()}\n{ticks}"


def _longest_run(text: str) -> int:
    return max((len(run) for run in re.findall("`+", text)), default=0)
