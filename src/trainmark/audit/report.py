"""A published report in parts: prose, code and tables, each under its headings and with its line."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from trainmark.audit.tables import ReportTable, csv_tables, pipe_tables, read_page
from trainmark.audit.terms import normalize_text, parse_number
from trainmark.base.errors import UserError
from trainmark.base.files import read_input

T = TypeVar("T")
LARGEST_FILE = 64 * 2**20
FENCE = re.compile(r"[\s>]*(`{3,}|~{3,})")
HEADING = re.compile(r"\s*(?:[-*+] )?(#{1,6})\s+(\S.*)")
TAG = re.compile(r"<[^<>]{0,200}>")
NEWLINE = re.compile(r"\r\n|\r|\n")
LOOKS_LIKE_HTML = re.compile(
    r"\s*(?:<!--[^>]{0,500}-->\s*)?<(?:!doctype html|html|head|body|table|h1|div)\b", re.I
)
DELIMITERS = {".csv": ",;\t", ".tsv": "\t"}
LINES_FOR_GUESS = 20
CAPTION_REACH = 4
# So many sentences between a heading and a table are read with it.
LONGEST_PREFACE = 12


class UnreadableReportError(UserError):
    """The file is not a report that can be read."""


@dataclass(frozen=True)
class Passage:
    """One line of prose, in narrow characters and without markup of HTML."""

    line: int
    text: str
    headings: tuple[str, ...]


@dataclass(frozen=True)
class CodeBlock:
    """A block of code or output; `line` is that of its first line."""

    line: int
    lines: tuple[str, ...]

    def numbered(self) -> Iterable[tuple[int, str]]:
        return enumerate(self.lines, self.line)


@dataclass(frozen=True)
class Report:
    """All that the checks see of one file."""

    path: str
    prose: tuple[Passage, ...] = ()
    code: tuple[CodeBlock, ...] = ()
    tables: tuple[ReportTable, ...] = ()
    headings: tuple[Passage, ...] = ()
    _cache: dict[str, Any] = field(default_factory=dict, compare=False, repr=False)

    def cached(self, name: str, build: Callable[[Report], Iterable[T]]) -> list[T]:
        """What several checks derive from the report, derived once."""
        if name not in self._cache:
            self._cache[name] = list(build(self))
        values: list[T] = self._cache[name]
        return values

    def mentions(self, pattern: re.Pattern[str]) -> bool:
        """Whether the headings, the prose, the code or the tables speak of something."""
        lines = [passage.text for passage in (*self.headings, *self.prose)]
        lines += [line for block in self.code for line in block.lines]
        lines += [cell.text for table in self.tables for row in (table.head, *table.rows) for cell in row]
        return any(pattern.search(line) for line in lines)

    @property
    def title(self) -> str:
        return self.headings[0].text if self.headings else ""


@dataclass
class _Parts:
    prose: list[Passage] = field(default_factory=list)
    code: list[CodeBlock] = field(default_factory=list)
    tables: list[ReportTable] = field(default_factory=list)
    headings: list[Passage] = field(default_factory=list)
    trail: dict[int, str] = field(default_factory=dict)

    def under(self) -> tuple[str, ...]:
        return tuple(text for _, text in sorted(self.trail.items()))

    def add_heading(self, level: int, line: int, text: str) -> None:
        self.trail = {above: title for above, title in self.trail.items() if above < level}
        self.trail[level] = text
        self.headings.append(Passage(line, text, self.under()))

    def as_report(self, path: str) -> Report:
        tables = tuple(sorted(self.tables, key=lambda table: table.line))
        return Report(path, tuple(self.prose), tuple(self.code), tables, tuple(self.headings))


def read_report(path: Path) -> Report:
    """Read one file; its content, not its ending, says what it is."""
    try:
        content = read_input(path, LARGEST_FILE)
    except OSError as error:
        raise UnreadableReportError(f"{path}: {error.strerror}; an audit reads reports and logs.") from error
    return parse_report(decoded(content, str(path)), str(path))


def decoded(content: bytes, name: str) -> str:
    """The text of a file, in UTF-8 or the Chinese national encoding; a binary file is refused."""
    if b"\x00" in content:
        raise UnreadableReportError(f"{name}: a binary file; an audit reads Markdown, HTML or CSV.")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError:
        return content.decode("gb18030", errors="replace")


def parse_report(text: str, path: str) -> Report:
    """Find the parts of a report's text."""
    text = NEWLINE.sub("\n", text)
    if LOOKS_LIKE_HTML.match(text):
        return _from_html(text).as_report(path)
    delimiter = _delimiter(text, Path(path).suffix.lower())
    if delimiter:
        return _Parts(tables=list(csv_tables(text, delimiter))).as_report(path)
    return _from_markdown(text).as_report(path)


def _from_markdown(text: str) -> _Parts:
    parts = _Parts()
    bars: list[tuple[int, str]] = []
    outside: list[str] = []
    block: list[str] | None = None
    opening, first = "", 0
    for number, line in enumerate(text.split("\n"), 1):
        fence = FENCE.match(line)
        outside.append("" if block is not None or fence else line)
        if block is not None:
            if fence and fence[1].startswith(opening) and not line.strip("`~> \t"):
                parts.code.append(CodeBlock(first, tuple(block)))
                block = None
            else:
                block.append(line)
        elif fence:
            block, opening, first = [], fence[1], number + 1
        else:
            bars.append((number, line))
            _add_line(parts, number, line)
    if block is not None:
        parts.code.append(CodeBlock(first, tuple(block)))
    tables = list(pipe_tables(bars))
    for code in parts.code:
        tables += pipe_tables(
            (number, line) for number, line in code.numbered() if line.lstrip().startswith("|")
        )
    if "<table" in text:
        tables += read_page("\n".join(outside)).tables
    parts.tables = [_placed(table, parts) for table in tables]
    return parts


def _add_line(parts: _Parts, number: int, line: str) -> None:
    if not line.strip():
        return
    if heading := HEADING.match(line):
        parts.add_heading(len(heading[1]), number, normalize_text(heading[2]).rstrip("# "))
    elif not line.lstrip().startswith("|"):
        parts.prose.append(Passage(number, normalize_text(TAG.sub(" ", line)), parts.under()))


def _from_html(text: str) -> _Parts:
    parts = _Parts()
    page = read_page(text)
    for kind, level, line, content in page.pieces:
        if kind == "heading":
            parts.add_heading(level, line, " ".join(normalize_text(content).split()))
        elif kind == "code":
            skipped = len(content) - len(content.lstrip("\n"))
            parts.code.append(CodeBlock(line + skipped, tuple(content.strip("\n").split("\n"))))
        elif kind == "prose":
            for offset, sentence in enumerate(content.split("\n")):
                if sentence.strip():
                    parts.prose.append(Passage(line + offset, normalize_text(sentence), parts.under()))
        else:
            parts.tables.append(_placed(page.tables[level], parts))
    return parts


def _placed(table: ReportTable, parts: _Parts) -> ReportTable:
    """The table under the headings above it, with the sentence just before it as its caption."""
    above = _last_before(parts.headings, table.line)
    sentence = _last_before(parts.prose, table.line)
    heading_line = above.line if above else 0
    is_near = sentence is not None and sentence.line > max(heading_line, table.line - CAPTION_REACH - 1)
    end = bisect_left(parts.prose, table.line, key=lambda passage: passage.line)
    preface = [
        p.text[:500] for p in parts.prose[max(0, end - LONGEST_PREFACE) : end] if p.line > heading_line
    ]
    caption = sentence.text if sentence and is_near else ""
    return table.under(above.headings if above else (), caption, " ".join(preface))


def _last_before(passages: list[Passage], line: int) -> Passage | None:
    index = bisect_left(passages, line, key=lambda passage: passage.line)
    return passages[index - 1] if index else None


def _delimiter(text: str, suffix: str) -> str | None:
    """The character that parts the fields of a CSV file, or None where the text is none."""
    first = [line for line in text.split("\n", LINES_FOR_GUESS)[:LINES_FOR_GUESS] if line.strip()]
    for character in DELIMITERS.get(suffix, ",;\t"):
        counts = {line.count(character) for line in first}
        is_grid = len(counts) == 1 and counts.pop() > 0 and len(first) > 1
        has_numbers = any(parse_number(field) for line in first[1:] for field in line.split(character))
        if is_grid and has_numbers and not any("|" in line or line.startswith("#") for line in first):
            return character
    return DELIMITERS[suffix][0] if suffix in DELIMITERS else None
