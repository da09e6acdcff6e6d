"""A rank's output, whole, beside the times at which its bytes came, without the secrets it was given."""

from __future__ import annotations

import io
import time
from collections.abc import Iterable
from pathlib import Path

MASK = b"*****"
# Shorter values ("1", "yes") would be cut out of figures.
SHORTEST_SECRET = 6


class Log:
    """Losing output must not block a rank: the first error is kept, and the rest is dropped."""

    def __init__(self, path: Path, secrets: Iterable[str] = ()) -> None:
        self.path = path
        self.trouble: OSError | None = None
        self._size = 0
        self._mask = Mask(secrets)
        self._files: list[io.FileIO] = []
        self._open()

    def add(self, chunk: bytes, moment: float | None = None) -> None:
        self._keep(self._mask.hide(chunk), moment)

    def close(self) -> None:
        self._keep(self._mask.rest(), None)
        self.release()

    def release(self) -> None:
        """Close the files until there is more to keep: of thousands of logs, not all can be open."""
        for file in self._files:
            file.close()
        self._files.clear()

    def _open(self) -> None:
        try:
            for name in (self.path, self.path.with_suffix(".arrivals")):
                self._files.append(name.open("ab", buffering=0))
        except OSError as error:
            self.trouble = error

    def _keep(self, chunk: bytes, moment: float | None) -> None:
        if not chunk or self.trouble is not None:
            return
        self._size += len(chunk)
        arrival = f"{self._size} {time.monotonic() if moment is None else moment:.6f}\n"
        if not self._files:
            self._open()
        try:
            log, arrivals = self._files
            _write(log, chunk)
            _write(arrivals, arrival.encode())
        except OSError as error:
            self.trouble = OSError(error.errno, error.strerror, str(self.path))


def _write(file: io.FileIO, rest: bytes) -> None:
    while rest:
        rest = rest[file.write(rest) :]


class Mask:
    """Replaces secrets in a stream; holds back only what may be the beginning of one."""

    def __init__(self, secrets: Iterable[str]) -> None:
        known = {secret.encode() for secret in secrets if len(secret) >= SHORTEST_SECRET}
        self._secrets = sorted(known, key=len, reverse=True)
        self._pending = b""

    def hide(self, chunk: bytes) -> bytes:
        if not self._secrets:
            return chunk
        text = self._pending + chunk
        for secret in self._secrets:
            text = text.replace(secret, MASK)
        overlap = max((_overlap(text, secret) for secret in self._secrets), default=0)
        self._pending = text[len(text) - overlap :]
        return text[: len(text) - overlap]

    def rest(self) -> bytes:
        pending, self._pending = self._pending, b""
        return pending


def _overlap(text: bytes, secret: bytes) -> int:
    """How many bytes at the end of `text` begin `secret`."""
    longest = min(len(secret) - 1, len(text))
    return next((size for size in range(longest, 0, -1) if text.endswith(secret[:size])), 0)
