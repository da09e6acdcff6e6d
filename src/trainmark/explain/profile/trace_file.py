"""The text of a trace file, plain or gzip, in chunks and with an end."""

from __future__ import annotations

import codecs
import gzip
import zlib
from collections.abc import Iterator
from pathlib import Path

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
