"""What may be unpacked from one input: counted by what is really read, over all its members and levels."""

from __future__ import annotations

from dataclasses import dataclass

from trainmark.published.readers.input.refusal import SourceError

# Logs compress 10 to 100 times; beyond this an archive of this size is made to fill a disk.
HIGHEST_RATIO = 250
RATIO_COUNTS_FROM = 256 << 20
MOST_UNPACKED = 64 << 30
MOST_MEMBERS = 100_000


@dataclass
class Budget:
    """The bytes read of one input, the bytes unpacked from them, and the members seen.

    `name` is what an excess is blamed on: the member that is being read.
    """

    name: str
    packed: int = 0
    unpacked: int = 0
    members: int = 0

    def add_unpacked(self, count: int) -> None:
        self.unpacked += count
        self.check()

    def add_member(self, name: str) -> None:
        self.members += 1
        self.name = name
        if self.members > MOST_MEMBERS:
            raise SourceError(
                f"{name}: the archive has more than {MOST_MEMBERS:,} members; the rest is not read."
            )
        self.check()

    def check(self) -> None:
        """Raise a SourceError where the input has been unpacked to more than it may."""
        if self.exceeded_by(0):
            raise SourceError(f"{self.name}: {self.limit}; the rest is not read.")

    def exceeded_by(self, more: int) -> bool:
        """Whether so many bytes more would be too many."""
        total = self.unpacked + more
        is_bomb = total > RATIO_COUNTS_FROM and total > HIGHEST_RATIO * self.packed
        return is_bomb or total > MOST_UNPACKED

    @property
    def limit(self) -> str:
        if HIGHEST_RATIO * self.packed < MOST_UNPACKED:
            return f"the archive unpacks to more than {HIGHEST_RATIO} times its size"
        return f"the archive unpacks to more than {MOST_UNPACKED >> 30} GiB"
