"""A bare git repository, read without a work tree."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path


class Snapshot:
    """The newest commit of a repository; one `git cat-file` answers for all of its files."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.commit = self._git("rev-parse", "HEAD").strip()
        self.first_day = min(self._git("log", "--format=%cs").split())
        self._reader = subprocess.Popen(
            ["git", "-C", str(folder), "cat-file", "--batch"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )

    def paths(self, *under: str) -> Iterator[str]:
        yield from filter(None, self._git("ls-tree", "-r", "-z", "--name-only", "HEAD", *under).split("\0"))

    def read(self, path: str) -> bytes:
        """The content of one file; empty where the snapshot lists it but does not hold it."""
        assert self._reader.stdin and self._reader.stdout
        self._reader.stdin.write(f"HEAD:{path}\n".encode())
        self._reader.stdin.flush()
        header = self._reader.stdout.readline().split()
        if header[-1] == b"missing":
            return b""
        content = self._reader.stdout.read(int(header[-1]))
        self._reader.stdout.read(1)
        return content

    def last_change(self, path: str) -> str:
        """The day of the last commit that changed a file, as far back as the snapshot goes."""
        return self._git("log", "-1", "--format=%cs", "HEAD", "--", path).strip()

    def text(self, path: str) -> str:
        return self.read(path).decode("utf-8", "replace")

    def _git(self, *arguments: str) -> str:
        return subprocess.check_output(["git", "-C", str(self.folder), *arguments], text=True)
