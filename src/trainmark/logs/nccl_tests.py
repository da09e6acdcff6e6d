"""What a program of nccl-tests prints: one line a size, its columns named in comments above.

#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw …
#        (B)    (elements)                               (us)  (GB/s)  (GB/s)            (us)  (GB/s) …
     1048576        262144     float     sum      -1    27.76   37.78   66.11      0    27.49   38.15 …
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

MICROSECOND = 1e-6
GB = 1e9


@dataclass(frozen=True)
class NcclTest:
    """One size, out of place: the mean time that the program printed, and its bus bandwidth."""

    bytes: int
    seconds: float
    bus_bytes_per_second: float


def read(text: str) -> Iterator[NcclTest]:
    """The columns are found by their names, of which versions differ; other lines are passed over."""
    columns: list[str] = []
    for line in text.splitlines():
        words = line.split()
        if words[:1] == ["#"] and {"size", "time", "busbw"} <= set(words):
            columns = words[1:]
        elif len(words) == len(columns) and words[0].isdigit():
            # `index` finds the first of two: the times out of place stand before those in place.
            size, time, busbw = (words[columns.index(name)] for name in ("size", "time", "busbw"))
            try:
                yield NcclTest(int(size), float(time) * MICROSECOND, float(busbw) * GB)
            except ValueError:
                continue
