"""What was sent to this node, kept by its content: sent once, found again by every later run."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import tarfile
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from trainmark.base.files import home, sha256_of

AGE_SECONDS = 30 * 86400.0
NAME = re.compile(r"[0-9a-f]{16,64}")


class ArchiveReceiver:
    """Archives that come in pieces and are unpacked only when they came whole."""

    def __init__(self) -> None:
        self._part: Path | None = None

    def have(self, name: str) -> str | None:
        place = self._place(name)
        if not place.is_dir():
            return None
        with contextlib.suppress(OSError):
            os.utime(place)  # what is used stays
        return str(place)

    def piece(self, data: bytes) -> None:
        if self._part is None:
            folder = home() / "sent"
            folder.mkdir(parents=True, exist_ok=True)
            handle, path = tempfile.mkstemp(prefix=".part-", dir=folder)
            os.close(handle)
            self._part = Path(path)
        with naming_folder(self._part.parent), self._part.open("ab") as file:
            file.write(data)

    def unpack(self, name: str, digest: str) -> str:
        """One rename makes it the node's; two senders at once do no harm."""
        if self._part is None:
            raise OSError("nothing was sent")
        part, self._part = self._part, None
        folder = Path(tempfile.mkdtemp(prefix=".part-", dir=part.parent))
        try:
            if sha256_of(part)[0] != digest:
                raise OSError("what was sent did not arrive whole")
            with naming_folder(part.parent), tarfile.open(part) as archive:
                # Written by our own side; the filter only keeps odd owners and modes out.
                if hasattr(tarfile, "tar_filter"):
                    archive.extractall(folder, filter="tar")
                else:
                    archive.extractall(folder)
            place = self._place(name)
            if not place.exists():
                forget_old(place.parent)
                try:
                    folder.rename(place)
                except OSError:
                    if not place.is_dir():  # a node with the same home was quicker
                        raise
                os.utime(place)
            return str(place)
        finally:
            part.unlink()
            shutil.rmtree(folder, ignore_errors=True)

    def forget(self) -> None:
        """What came in half."""
        if self._part is not None:
            self._part.unlink()

    def _place(self, name: str) -> Path:
        if not NAME.fullmatch(name):
            raise OSError(f"{name!r} is no content hash")
        return home() / "sent" / name


@contextlib.contextmanager
def naming_folder(folder: Path) -> Iterator[None]:
    """A write that fails does not say where; "No space left on device" alone helps nobody."""
    try:
        yield
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(folder)) from error


def forget_old(folder: Path) -> None:
    """What no run has asked for in a month would only fill the disk."""
    for place in folder.iterdir():
        with contextlib.suppress(OSError):
            if time.time() - place.stat().st_mtime > AGE_SECONDS:
                shutil.rmtree(place, ignore_errors=True)


def relocated(value: Any, places: dict[str, str]) -> Any:
    """The same with every path of home turned into the one that stands for it here, longest first."""
    if isinstance(value, str):
        for ours, theirs in sorted(places.items(), key=lambda pair: -len(pair[0])):
            value = value.replace(ours, theirs)
        return value
    if isinstance(value, list):
        return [relocated(each, places) for each in value]
    if isinstance(value, dict):
        return {name: relocated(each, places) for name, each in value.items()}
    return value
