"""Where a rank's bytes go: into a file of this machine, or home."""

from __future__ import annotations

import time
from pathlib import Path

from trainmark.launch.agent.log import Log
from trainmark.launch.agent.wire import Wire


class Output:
    """Losses are told, once."""

    def __init__(self, rank: int, wire: Wire, log: str | None, secrets: list[str]) -> None:
        self.rank = rank
        self.wire = wire
        self.log = Log(Path(log), secrets) if log else None
        self.trouble_sent = False

    def add(self, chunk: bytes) -> None:
        if self.log is None:
            self.wire.send({"event": "output", "rank": self.rank, "mono": time.monotonic()}, chunk)
            return
        self.log.add(chunk)
        self.tell_trouble()

    def close(self) -> None:
        if self.log is not None:
            self.log.close()
            self.tell_trouble()

    def tell_trouble(self) -> None:
        if self.log is not None and self.log.trouble is not None and not self.trouble_sent:
            self.trouble_sent = True
            error = self.log.trouble
            details = {"number": error.errno, "reason": error.strerror, "path": str(self.log.path)}
            self.wire.send({"event": "lost-output", **details})
