"""The pages as the tests see them: fenced blocks, tables, links."""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")])
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
SPAN = re.compile(r"`([^`\n]+)`")
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)


def page(name):
    return (ROOT / name).read_text(encoding="utf-8")


def blocks(text, *kinds):
    """The contents of the fenced blocks of these kinds, in order."""
    return [body for kind, body in BLOCK.findall(text) if kind in kinds]


def prose(text):
    return BLOCK.sub("", text)


def commands(text):
    """Every command line that a page shows: those in blocks, and those in the middle of a sentence."""
    lines = [line for block in blocks(text, "sh", "shell") for line in block.splitlines()]
    return [line.strip() for line in [*lines, *SPAN.findall(prose(text))] if line.strip()]


def anchors(text):
    """The fragments by which the headings can be reached, as GitHub makes them."""
    return {
        re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in HEADING.findall(prose(text))
    }


def section(text, title):
    """What stands under one heading, up to the next."""
    parts = re.split(r"^#+ ", prose(text), flags=re.MULTILINE)
    return next(part for part in parts if part.partition("\n")[0] == title)


def table(text):
    """The rows of the first table, each a mapping from the header's words; `code` marks are taken off."""
    lines = [line for line in text.splitlines() if line.startswith("|")]
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    header, _, *rows = cells
    return [dict(zip(header, row, strict=True)) for row in rows]


def code(cell):
    """The words in a cell that stand in code marks."""
    return SPAN.findall(cell)
