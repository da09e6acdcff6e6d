"""What is known of a shard that is done: its rows, names and checksums, in the journal of the set."""

from __future__ import annotations

import json
import struct
import zlib
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np
import numpy.typing as npt

from trainmark.datasets import checksums
from trainmark.datasets.files import write_whole
from trainmark.datasets.index import RECORD
from trainmark.datasets.records.shard_file import RecordOffset
from trainmark.datasets.trouble import Trouble

ROW = struct.Struct("<IQIQIiI")
PRINT = struct.Struct("<Q")
MAIN, BESIDE = 0, 1
#: The ending of a shard's second file, for pictures that the format has in pieces.
WHOLE = ".whole"
SAMPLE = 4096


@dataclass(frozen=True)
class ShardRecord:
    """The files of one shard in the journal; `.json` is written last and says that the others are whole."""

    folder: Path
    stem: str

    def path(self, ending: str) -> Path:
        return self.folder / f"{self.stem}.{ending}"

    def rows(self) -> npt.NDArray[np.void]:
        """The index of this shard; `shard` is 0 for its file and 1 for the second one beside it."""
        return np.fromfile(self.path("rows"), RECORD)

    def prints(self) -> npt.NDArray[np.uint64]:
        return np.fromfile(self.path("prints"), np.uint64)

    def facts(self) -> dict[str, Any] | None:
        try:
            facts: dict[str, Any] = json.loads(self.path("json").read_bytes())
            return facts
        except (OSError, ValueError):
            return None

    @property
    def written(self) -> int:
        return int((self.facts() or {}).get("written", 0))

    @property
    def has_second(self) -> bool:
        return bool((self.facts() or {}).get("second_file"))

    def shards(self) -> Path:
        """Where each picture lies that is a file of its own: by default where its name says."""
        return self.path("shards") if self.path("shards").exists() else self.path("names")

    def troubles(self) -> list[Trouble]:
        facts = self.facts() or {}
        return [
            Trouble(name, tuple(codes), tolerated, note)
            for name, codes, tolerated, note in facts.get("troubles", [])
        ]

    def is_whole(self, digest: str, root: Path) -> bool:
        """Made of the same pictures, and every file of it has the bytes that were written."""
        facts = self.facts()
        if facts is None or facts["digest"] != digest:
            return False
        try:
            with self.path("sums").open("rb") as lines:
                for line in lines:
                    checksum, _, path = line.decode("utf-8", "surrogateescape").rstrip("\n").partition("  ")
                    if checksums.of_file(root / path) != checksum:
                        return False
        except OSError:
            return False
        return True

    def forget(self) -> None:
        self.path("json").unlink(missing_ok=True)


class ShardRecorder:
    """Writes them while the shard is written."""

    def __init__(self, record: ShardRecord) -> None:
        self._record = record
        self._files = ExitStack()
        self.count = 0
        self.troubles: list[Trouble] = []

    def __enter__(self) -> ShardRecorder:
        self._record.forget()
        self._rows, self._names, self._prints, self._sums = (
            self._files.enter_context(self._record.path(ending).open("wb"))
            for ending in ("rows", "names", "prints", "sums")
        )
        return self

    def add(self, name: str, label: int, place: RecordOffset, picture: bytes) -> None:
        where = place.whole or place
        shard = BESIDE if place.whole else MAIN
        self._rows.write(
            ROW.pack(shard, where.begin, where.length, where.offset, where.size, label, where.crc)
        )
        self._names.write(f"{name}\n".encode("utf-8", "surrogateescape"))
        # Two pictures with the same print are compared byte by byte; of different ones hardly any have it.
        middle = len(picture) // 2
        sample = zlib.crc32(picture[middle : middle + SAMPLE])
        self._prints.write(PRINT.pack((len(picture) & 0xFFFFFFFF) << 32 | sample))
        self.count += 1

    def add_file(self, checksum: str, path: str) -> None:
        self._sums.write(checksums.line(checksum, path))

    def done(self, digest: str, pictures: int, has_second: bool) -> None:
        self._files.close()
        facts = {
            "digest": digest,
            "found": pictures,
            "written": self.count,
            "second_file": has_second,
            "troubles": [list(trouble) for trouble in self.troubles],
        }
        write_whole(self._record.path("json"), json.dumps(facts).encode())

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._files.close()
