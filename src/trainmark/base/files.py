"""Trainmark's own folder, files written whole or not at all, and bounded reads of what somebody else names.

A path may be a FIFO or /dev/zero. `st_size` is not trusted: devices and files of /proc claim 0 and never
end, a file may grow while it is read.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import select
import stat
import time
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO


def home() -> Path:
    """Return `$TRAINMARK_HOME`, or where the XDG base directory rules put a program's data."""
    if named := os.environ.get("TRAINMARK_HOME"):
        return Path(named).absolute()
    data = os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share"
    return Path(data).absolute() / "trainmark"


@contextlib.contextmanager
def whole_file(path: Path, durable: bool = True) -> Iterator[BinaryIO]:
    """Open a file to be written, which takes the place of `path` when it is whole; or nothing changes.

    Readers see the old file or the new one, where it is `durable` also after a power cut.
    """
    # A name of its own: two writers do not meet, and nothing that lies there is opened.
    part = path.with_name(f".{path.name}.{os.urandom(4).hex()}.part")
    try:
        with part.open("xb") as file:
            yield file
            file.flush()
            if durable:
                os.fsync(file.fileno())
        part.replace(path)
    except BaseException:
        part.unlink(missing_ok=True)
        raise


def sync_folder(folder: Path) -> None:
    """Make the names in a folder as durable as the files."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def write_text(path: Path, text: str) -> None:
    """Write a text in place of what a link leads to; a device or pipe (`--out /dev/stdout`) is written to."""
    # Half a surrogate pair, which a program may have said, is written as its escape.
    data = text.encode("utf-8", "backslashreplace")
    if path.exists() and not path.is_file() and not path.is_dir():
        # Without O_NONBLOCK, opening a FIFO waits until somebody reads from it.
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_NONBLOCK), "wb") as special:
            os.set_blocking(special.fileno(), True)
            special.write(data)
        return
    if path.is_dir():
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    with whole_file(path.resolve()) as file:
        file.write(data)


CHUNK_BYTES = 1 << 20
PIPE_SECONDS = 10.0


def sha256_of(path: Path) -> tuple[str, int]:
    """Return the digest of a regular file, in hexadecimal digits, and how many bytes it has."""
    digest, size = hashlib.sha256(), 0
    with open_regular(path) as file:
        while chunk := file.read(CHUNK_BYTES):
            digest.update(chunk)
            size += len(chunk)
    return digest.hexdigest(), size


def open_regular(path: Path) -> BinaryIO:
    """Open a regular file for reading; OSError, at once, for a FIFO, a socket, a device or a folder."""
    descriptor = _open(path)
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError(errno.EINVAL, "this is no regular file", str(path))
        return os.fdopen(descriptor, "rb")
    except BaseException:
        os.close(descriptor)
        raise


def read_regular(path: Path, limit: int) -> bytes:
    """Return the whole of a regular file; OSError where it is none or holds more than `limit` bytes."""
    descriptor = _open(path)
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise OSError(errno.EINVAL, "this is no regular file", str(path))
        return _within(_read(descriptor, status.st_size, limit), path, limit)
    finally:
        os.close(descriptor)


def read_input(path: Path, limit: int) -> bytes:
    """Like `read_regular` for a file that a user names, which may also be a pipe: `--hostfile <(hosts)`."""
    descriptor = _open(path)
    try:
        status = os.fstat(descriptor)
        if stat.S_ISFIFO(status.st_mode):
            return _within(_read_pipe(descriptor, path, limit), path, limit)
        if not stat.S_ISREG(status.st_mode):
            raise OSError(errno.EINVAL, "this is neither a regular file nor a pipe", str(path))
        return _within(_read(descriptor, status.st_size, limit), path, limit)
    finally:
        os.close(descriptor)


def _read(descriptor: int, size: int, limit: int) -> bytes:
    """All of a file, or one byte more than the limit; `size` is what it claims and may be wrong."""
    data = os.read(descriptor, min(size, limit) + 1)
    if 0 < len(data) == size:  # asked for one byte more: this is its end
        return data
    while len(data) <= limit and (more := os.read(descriptor, min(CHUNK_BYTES, limit + 1 - len(data)))):
        data += more
    return data


def _open(path: Path) -> int:
    # Without O_NONBLOCK, opening a FIFO waits until somebody opens its other end.
    return os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY)


def _read_pipe(descriptor: int, path: Path, limit: int) -> bytes:
    data = bytearray()
    readable = select.poll()
    readable.register(descriptor, select.POLLIN)
    deadline = time.monotonic() + PIPE_SECONDS
    while len(data) <= limit:
        try:
            chunk = os.read(descriptor, CHUNK_BYTES)
        except BlockingIOError:
            if not readable.poll(1000 * max(0.0, deadline - time.monotonic())):
                reason = f"its writer did not finish within {PIPE_SECONDS:.0f} s"
                raise OSError(errno.ETIMEDOUT, reason, str(path)) from None
            continue
        if not chunk and not data:
            raise OSError(errno.ENODATA, "this pipe has no writer", str(path))
        if not chunk:
            break
        data += chunk
    return bytes(data)


def _within(data: bytes, path: Path, limit: int) -> bytes:
    if len(data) > limit:
        size = f"{limit >> 20} MiB" if limit >> 20 else f"{limit} bytes"
        raise OSError(errno.EFBIG, f"this is larger than {size}", str(path))
    return data
