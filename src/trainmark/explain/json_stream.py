"""A trace file, plain or gzip, as JSON read piece by piece: never the whole text in memory."""

from __future__ import annotations

import codecs
import gzip
import re
import zlib
from collections.abc import Iterator
from decimal import Decimal
from json import JSONDecodeError, JSONDecoder
from pathlib import Path
from typing import Any

from trainmark.base.errors import UserError
from trainmark.base.files import open_regular

CHUNK_BYTES = 1 << 20
# A trace of 100 million characters has about 300,000 records; gzip makes a few MB of 8 GB of zeros.
MOST_BYTES = 8_000_000_000
# Times and numbers differ from event to event, so that traces unpack to 10 to 30 times their size. Of the
# first bytes a ratio says nothing.
MOST_RATIO, RATIO_FROM_BYTES = 200, 4 << 20
GZIP = b"\x1f\x8b"


def text_chunks(path: Path, limit: int = MOST_BYTES) -> Iterator[str]:
    """Yield the decoded text; UserError where the file cannot be read or holds more than `limit` bytes."""
    decoder = codecs.getincrementaldecoder("utf-8-sig")("replace")
    size = 0
    try:
        for data in _chunks(path):
            size += len(data)
            if size > limit:
                raise UserError(
                    f"{path} is too large: more than {limit / 1e9:g} GB of text; profile fewer steps."
                )
            if text := decoder.decode(data):
                yield text
    except EOFError:
        raise UserError(
            f"{path} is cut short: its gzip stream ends before its end; take the profile again."
        ) from None
    except (zlib.error, gzip.BadGzipFile) as error:
        raise UserError(f"{path} is damaged: {error}; take the profile again.") from None
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error.strerror or error}.") from None
    if text := decoder.decode(b"", True):
        yield text


def _chunks(path: Path) -> Iterator[bytes]:
    with open_regular(path) as file:
        packed = file.read(len(GZIP)) == GZIP
        file.seek(0)
        if not packed:
            yield from iter(lambda: file.read(CHUNK_BYTES), b"")
            return
        taken = 0
        with gzip.GzipFile(fileobj=file) as unpacked:
            while data := unpacked.read(CHUNK_BYTES):
                taken += len(data)
                if taken > RATIO_FROM_BYTES and taken > MOST_RATIO * file.tell():
                    raise UserError(
                        f"{path} unpacks to more than {MOST_RATIO} times its size: it is no trace."
                    )
                yield data


# The longest member or element; one event of a trace has a few hundred characters.
MOST_CHARACTERS = 1 << 24
# An escape or literal that the end of the text cuts in two is reported at its start, at most this far back.
MARGIN = 16
SPACE = re.compile(r"[ \t\n\r]*")
COMMA = re.compile(r"[ \t\n\r]*,[ \t\n\r]*")
NOT_FINITE = re.compile(r"-?(?:inf|nan)\b")
# What remains behind the reported place where a text ends before its value does.
CUT = re.compile(
    r"[\s,:]*(?:-|[.eE][+-]?|t|tr|tru|f|fa|fal|fals|n|nu|nul|N|Na|-?I(?:n(?:f(?:i(?:n(?:it?)?)?)?)?)?|\\|\\?u\w{0,4})?"
)


class JsonError(ValueError):
    """Text that is no JSON; the message says where."""


class TruncatedError(JsonError):
    """JSON that ends before it is complete."""


class JsonStream:
    """Walks through a JSON text that comes in chunks."""

    def __init__(self, chunks: Iterator[str]) -> None:
        self._chunks = chunks
        self._text = ""
        self._at = 0
        self._before = 0  # characters dropped in front of the text
        # Raw control characters in a name are no reason to refuse a trace: some profilers write them.
        decoder: Any = JSONDecoder(parse_float=Decimal, strict=False)
        self._scan = decoder.scan_once  # `raw_decode` without its function call

    @property
    def place(self) -> int:
        """Number of the next character, from 0."""
        return self._before + self._at

    def peek(self) -> str:
        """Skip white space and return the next character, "" at the end."""
        while True:
            match = SPACE.match(self._text, self._at)
            assert match is not None
            self._at = match.end()
            if self._at < len(self._text):
                return self._text[self._at]
            if not self._more():
                return ""

    def members(self) -> Iterator[str]:
        """Yield the names of an object; the caller takes the value of each before asking for the next."""
        self._expect("{")
        if self.peek() == "}":
            self._at += 1
            return
        while True:
            if self.peek() not in ('"', ""):
                self._refuse("expected a name in double quotes")
            name: str = self.value()
            self._expect(":")
            yield name
            if self._expect(",}") == "}":
                return

    def elements(self) -> Iterator[Any]:
        """Yield the elements of an array."""
        self._expect("[")
        if self.peek() == "]":
            self._at += 1
            return
        scan, comma = self._scan, COMMA.match
        while True:
            # Nearly all elements lie within the text: this loop is what the time of reading goes to.
            text, at = self._text, self._at
            try:
                while True:
                    value, end = scan(text, at)
                    separator = comma(text, end)
                    if separator is None:
                        break
                    at = separator.end()
                    self._at = at
                    yield value
            except (StopIteration, ValueError, ArithmeticError, RecursionError):
                pass  # `value` reads on, or says what is wrong
            yield self.value()
            if self._expect(",]") == "]":
                return
            self.peek()

    def value(self) -> Any:
        """Return the next value, reading on until it is complete."""
        if not self.peek():
            raise TruncatedError(self._where("it ends"))
        while True:
            try:
                value, end = self._scan(self._text, self._at)
            except StopIteration as stop:
                if not self._mend(stop.value):
                    self._continue(stop.value, "expected a value")
            except JSONDecodeError as error:
                at = len(self._text) if error.msg.startswith("Unterminated") else error.pos
                self._continue(at, error.msg[0].lower() + error.msg[1:])
            except RecursionError:
                raise JsonError(self._where("nested too deeply")) from None
            except (ValueError, ArithmeticError):
                raise JsonError(self._where("a number that cannot be read")) from None
            else:
                # A number may go on in the next chunk: "1", "1.", "1e-".
                number = type(value) is int or type(value) is Decimal
                before = self._at
                if number and end >= len(self._text) - MARGIN and self._more():
                    continue
                self._at += end - before
                return value

    def _mend(self, failed: int) -> bool:
        """Put NaN, which can be read, in place of what C++ prints for a number that is not finite."""
        match = NOT_FINITE.match(self._text, failed)
        if match:
            self._text = f"{self._text[:failed]}{'NaN':>{len(match[0])}}{self._text[match.end() :]}"
        return bool(match)

    def _continue(self, failed: int, reason: str) -> None:
        """Read on where the end of the text may be why decoding failed; else refuse."""
        if failed < len(self._text) - MARGIN:
            self._refuse(reason, failed)
        behind = self._text[failed:]
        # Twice as much each time, or a long value would be decoded from its start too often.
        wanted = 2 * (len(self._text) - self._at)
        failed -= self._at  # reading on drops what is before the value
        more = False
        while len(self._text) - self._at <= wanted and self._more():
            more = True
        if not more:
            if CUT.fullmatch(behind):
                raise TruncatedError(self._where("it ends", failed))
            self._refuse(reason, failed)
        if len(self._text) - self._at > MOST_CHARACTERS:
            self._refuse(f"one value is longer than {MOST_CHARACTERS:,} characters")

    def _more(self) -> bool:
        chunk = next(self._chunks, "")
        self._text = self._text[self._at :] + chunk
        self._before += self._at
        self._at = 0
        return bool(chunk)

    def _expect(self, characters: str) -> str:
        character = self.peek()
        if not character:
            raise TruncatedError(self._where("it ends"))
        if character not in characters:
            # A number that the end of the text cuts off at its point or exponent.
            if len(self._text) - self._at <= MARGIN and not self._more() and CUT.fullmatch(self._text):
                raise TruncatedError(self._where("it ends"))
            self._refuse("expected " + " or ".join(f"'{expected}'" for expected in characters))
        self._at += 1
        return character

    def _refuse(self, reason: str, at: int | None = None) -> None:
        raise JsonError(self._where(reason, at))

    def _where(self, reason: str, at: int | None = None) -> str:
        return f"{reason} at character {self._before + (self._at if at is None else at):,}"
