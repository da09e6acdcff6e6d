"""Rate limits: a bucket of tokens for each client, filled as time passes."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from dataclasses import dataclass

MOST_CLIENTS = 10_000
FEWEST_AT_ONCE = 5.0


@dataclass
class _Bucket:
    level: float
    time: float


class RateLimit:
    """At most `per_minute` requests a minute from one client, in bursts of as many as a quarter of that.

    The clients that were seen longest ago are forgotten first, so that memory stays bounded.
    """

    def __init__(self, per_minute: int) -> None:
        self._rate = per_minute / 60
        self._burst = max(FEWEST_AT_ONCE, per_minute / 4)
        self._buckets: OrderedDict[str, _Bucket] = OrderedDict()
        self._lock = threading.Lock()

    def wait_seconds(self, client: str, now: float | None = None) -> float:
        """Take one request; 0 where it is allowed, else the seconds until the next one is."""
        now = time.monotonic() if now is None else now
        with self._lock:
            bucket = self._buckets.pop(client, None) or _Bucket(self._burst, now)
            bucket.level = min(self._burst, bucket.level + (now - bucket.time) * self._rate)
            bucket.time = now
            self._buckets[client] = bucket
            if len(self._buckets) > MOST_CLIENTS:
                self._buckets.popitem(last=False)
            if bucket.level < 1:
                return (1 - bucket.level) / self._rate
            bucket.level -= 1
            return 0.0
