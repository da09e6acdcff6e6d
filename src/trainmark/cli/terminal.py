"""What commands write to a terminal or a pipe."""

from __future__ import annotations

import contextlib
import io
import json
import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

import click

from trainmark.base.errors import UserError
from trainmark.base.text import HIDDEN

if TYPE_CHECKING:
    from rich.console import Console

    from trainmark.view.blocks import Page
    from trainmark.view.catalogue import Lang


STANDARD_DESCRIPTORS = 3


def escaped(text: str) -> str:
    """Return the text with hidden characters escaped as JSON escapes them: ESC becomes `\\u001b`."""
    return HIDDEN.sub(lambda match: f"\\u{ord(match.group()):04x}", text.replace("\r\n", "\n"))


class VisibleText(io.TextIOWrapper):
    """A text stream over the same bytes as `unfiltered`, without what a terminal would obey."""

    def __init__(self, unfiltered: TextIO) -> None:
        encoding = unfiltered.encoding or "utf-8"
        super().__init__(
            unfiltered.buffer,
            encoding="utf-8" if encoding.lower() in ("ascii", "us-ascii", "ansi_x3.4-1968") else encoding,
            errors="backslashreplace",
            line_buffering=unfiltered.isatty(),
            write_through=True,
        )
        self.unfiltered = unfiltered

    def write(self, text: str) -> int:
        super().write(escaped(text))
        return len(text)


def unfiltered(stream: TextIO) -> TextIO:
    """Return the stream behind a `VisibleText`, for documents and for consoles that escape by themselves."""
    return stream.unfiltered if isinstance(stream, VisibleText) else stream


@contextlib.contextmanager
def visible_output() -> Iterator[None]:
    """Let `sys.stdout` and `sys.stderr` show controls as escapes while the command runs."""
    _open_closed_descriptors()
    before = sys.stdout, sys.stderr
    sys.stdout, sys.stderr = (_visible(stream) for stream in before)
    filtered = sys.stdout, sys.stderr
    try:
        yield
    finally:
        sys.stdout, sys.stderr = before
        for stream in filtered:
            if isinstance(stream, VisibleText):
                with contextlib.suppress(OSError, ValueError):
                    stream.detach()  # else its end would close the bytes below


def _visible(stream: TextIO | None) -> TextIO:
    if stream is None:
        return Path(os.devnull).open("w", encoding="utf-8")
    if not hasattr(stream, "buffer"):  # a notebook's, or a test's own
        return stream
    with contextlib.suppress(OSError, ValueError):
        stream.flush()
    return VisibleText(stream)


def _open_closed_descriptors() -> None:
    """Fill closed ones with /dev/null: a file opened later would else take the number and get our output."""
    with contextlib.suppress(OSError):
        while (number := os.open(os.devnull, os.O_RDWR)) < STANDARD_DESCRIPTORS:
            os.set_inheritable(number, True)
        os.close(number)


def print_json(value: Any) -> None:
    """Print one JSON document; what a terminal or UTF-8 cannot take becomes its JSON escape on the way."""
    click.echo(json.dumps(value, indent=2, ensure_ascii=False))


def rendered(page: Page, kind: str, lang: Lang = "en", width: int | None = None, style: str = "") -> str:
    """Return a page as `text`, `md` or `html`."""
    from trainmark.view import html, markdown, terminal

    if kind == "text":
        return terminal.render(page, lang, width)
    return markdown.render(page, lang) if kind == "md" else html.render(page, lang, style)


def deliver(document: str, kind: str, out: Path | None) -> None:
    """Print a document, or write it to a file and print the name of that."""
    if out is None:
        # A page is for a browser, and its scripts hold such characters as others must not see.
        click.echo(document, nl=False, file=unfiltered(sys.stdout) if kind == "html" else None)
        return
    from trainmark.base.files import write_text

    try:
        write_text(out, document)
    except OSError as error:
        raise UserError(f"{out} cannot be written: {error.strerror}.") from error
    click.echo(str(out))


def terminal_width() -> int | None:
    """Return the columns of the terminal, or of COLUMNS; None where output is a file or a pipe, never cut."""
    if "COLUMNS" in os.environ or sys.stdout.isatty():
        return shutil.get_terminal_size((0, 0)).columns or None
    return None


def flush() -> OSError | None:
    """Write out what is pending; return what went wrong, other than that the reader has gone (`| head`)."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except BrokenPipeError:
            discard_output()
        except OSError as error:
            discard_output()
            return error
    return None


def discard_output() -> None:
    """Let standard output lead nowhere, so that nothing more fails at the end of the process."""
    with contextlib.suppress(OSError, ValueError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)


def console(stderr: bool = False, **options: Any) -> Console:
    """Return a console of rich's whose text is escaped and whose own styles and moves are not."""
    from rich.console import Console, ConsoleOptions, RenderableType
    from rich.segment import Segment

    class VisibleConsole(Console):
        def render(
            self, renderable: RenderableType, options: ConsoleOptions | None = None
        ) -> Iterator[Segment]:
            for segment in super().render(renderable, options):
                text, style, control = segment
                yield segment if control else Segment(escaped(text), style)

    stream = sys.stderr if stderr else sys.stdout
    return VisibleConsole(file=unfiltered(stream), highlight=False, **options)
