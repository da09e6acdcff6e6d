"""Command-line help in Chinese, where the environment asks for it.

Commands are written in English; their text is the key in `chinese.yaml`, and what that lacks stays English.
"""

from __future__ import annotations

import contextlib
import functools
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import click

CATALOGUE = Path(__file__).with_name("chinese.yaml")
UNCHANGED = "\b\n"  # click does not wrap a paragraph that begins so
CUT = "..."  # what click puts at the end of a text that is too long for the list of commands
PARAGRAPHS = re.compile(r"\n\s*\n")
EXAMPLE = re.compile(r"(\s+\S.*?\s{2,})(\S.*)")
NOTES = re.compile(r"(.*?)\s*((?:\[[^]]*\]\s*)*)", re.DOTALL)
DEFAULT = "default: "
REQUIRED = "required"
SYNTAX = ("[OPTIONS]", "COMMAND [ARGS]...", "[COMMAND] [ARGS]...")


@contextlib.contextmanager
def help_language(environment: Mapping[str, str]) -> Iterator[None]:
    """Let click write help in Chinese while the command runs, where the environment asks for Chinese."""
    before = click.Context.formatter_class
    if asks_for_chinese(environment):
        click.Context.formatter_class = ChineseHelp
    try:
        yield
    finally:
        click.Context.formatter_class = before


def asks_for_chinese(environment: Mapping[str, str]) -> bool:
    """Whether messages are to be Chinese: LC_ALL, LC_MESSAGES, LANG; LANGUAGE first unless that is C."""
    names = ("LC_ALL", "LC_MESSAGES", "LANG")
    locale = next((environment[name] for name in names if environment.get(name)), "C")
    if locale == "POSIX" or locale.partition(".")[0] == "C":
        return False
    preferred = (environment.get("LANGUAGE") or locale).partition(":")[0]
    return re.match(r"zh(?![a-z])", preferred, re.IGNORECASE) is not None


@functools.cache
def catalogue() -> dict[str, str]:
    """Return the Chinese of each English text."""
    from trainmark.base.yaml_source import packaged

    texts: dict[str, str] = packaged(CATALOGUE)
    return texts


class ChineseHelp(click.HelpFormatter):
    """Writes the text of the catalogue in place of the English one, wrapped by the columns that it takes."""

    def translated(self, text: str) -> str:
        texts = catalogue()
        if text.endswith(CUT):
            start = text.removesuffix(CUT)
            text = next((whole for whole in texts if whole.startswith(start)), text)
        return texts.get(text) or text

    def write_usage(self, prog: str, args: str = "", prefix: str | None = None) -> None:
        for syntax in SYNTAX:
            if args == syntax or args.startswith(f"{syntax} ") or args.endswith(f" {syntax}"):
                args = args.replace(syntax, self.translated(syntax))
        super().write_usage(prog, args, self.translated("Usage:") if prefix is None else prefix)

    def write_heading(self, heading: str) -> None:
        self.write(f"{'':>{self.current_indent}}{self.translated(heading)}：\n")

    def write_text(self, text: str) -> None:
        paragraphs = [self._paragraph(paragraph) for paragraph in PARAGRAPHS.split(text)]
        super().write_text("\n\n".join(UNCHANGED + "\n".join(lines) for lines in paragraphs))

    def write_dl(self, rows: Iterable[tuple[str, str]], col_max: int = 30, col_spacing: int = 2) -> None:
        rows = list(rows)
        first_column = min(max((len(term) for term, _ in rows), default=0), col_max) + col_spacing
        width = max(self.width - first_column - 2, 10)
        lines = [(term, _wrapped(self._definition(text), width)) for term, text in rows]
        written = [(term, UNCHANGED + "\n".join(text) if text else "") for term, text in lines]
        super().write_dl(written, col_max, col_spacing)

    def _paragraph(self, paragraph: str) -> list[str]:
        if paragraph.startswith(UNCHANGED):
            return [self._example(line) for line in paragraph.splitlines()[1:]]
        return _wrapped(self.translated(" ".join(paragraph.split())), self.width - self.current_indent)

    def _example(self, line: str) -> str:
        """Translate a heading, or what stands to the right of a command."""
        if not line.startswith(" "):
            return self.translated(line)
        explained = EXAMPLE.fullmatch(line)
        return explained[1] + self.translated(explained[2]) if explained else line

    def _definition(self, text: str) -> str:
        """Translate the text of an option, and what click or the option adds in brackets."""
        sentence, notes = NOTES.fullmatch(text).groups()  # type: ignore[union-attr]
        brackets = [f"[{self._note(note)}]" for note in re.findall(r"\[([^]]*)\]", notes)]
        return "  ".join([*([self.translated(sentence)] if sentence else []), *brackets])

    def _note(self, note: str) -> str:
        return "；".join(map(self._fact, note.split("; ")))

    def _fact(self, fact: str) -> str:
        """Translate `required`, and a default of several words; others are values."""
        if fact == REQUIRED:
            return self.translated(fact)
        if not fact.startswith(DEFAULT):
            return fact
        value = fact.removeprefix(DEFAULT)
        return self.translated(DEFAULT.strip()) + (self.translated(value) if " " in value else value)


def _wrapped(text: str, width: int) -> list[str]:
    from trainmark.view.terminal import broken

    return broken(text, width) if text else []
