"""What stands before every page: security headers, rate limits, and a cache of responses.

The cache is asked only after a request has been allowed, and by the cookie or token that asked: nobody
sees what was made for another. The least recently used go first, so that memory stays bounded.
"""

from __future__ import annotations

import functools
import hashlib
import logging
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass

from sqlalchemy import Select, func, select
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import MutableHeaders
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from trainmark.server.access.guard import viewing
from trainmark.server.database.models import PackTable
from trainmark.server.faults import fault_of, first_line

POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self' data:",
        "font-src 'self'",
        "connect-src 'self'",
        "form-action 'self'",
        "base-uri 'none'",
        "frame-ancestors 'none'",
    )
)
SECURITY_HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), microphone=(), geolocation=()",
}
YEAR = 31_536_000
LOG = logging.getLogger("uvicorn.error")


class SecurityHeaders:
    """Adds them to every response, errors included; HSTS where browsers come by https.

    `failed` answers what no handler of the application could.
    """

    def __init__(self, app: ASGIApp, secure: bool, failed: Callable[[Request, Exception], Response]) -> None:
        self.app, self.failed = app, failed
        self.headers = {
            **SECURITY_HEADERS,
            **({"Strict-Transport-Security": f"max-age={YEAR}"} if secure else {}),
        }

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return

        started = False

        async def send_with_headers(message: Message) -> None:
            nonlocal started
            if message["type"] == "http.response.start":
                started = True
                headers = MutableHeaders(scope=message)
                for name, value in self.headers.items():
                    headers.setdefault(name, value)
                # What needs a token must not stay in a cache that others share.
                headers.setdefault("Cache-Control", "no-store")
            await send(message)

        try:
            await self.app(scope, receive, send_with_headers)
        except Exception as failure:  # logged, with its traceback where it is ours, and answered as all is
            if fault := fault_of(failure):
                LOG.error("%s: %s (%s)", scope["path"], fault.sentence, first_line(failure))
            else:
                LOG.exception("%s failed", scope["path"])
            if started:
                raise
            response = await run_in_threadpool(self.failed, Request(scope), failure)
            await response(scope, receive, send_with_headers)


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


# What a page says of the time since something must not grow old.
CACHE_SECONDS = 60.0
MOST_BYTES = 8 << 20
OK = 200
# What a response depends on beside the address and the data.
KEY_HEADERS = ("cookie", "authorization", "accept-language", "accept", "host")

Key = tuple[int, str]


class ResponseCache:
    def __init__(self, most_bytes: int = MOST_BYTES) -> None:
        self._most_bytes = most_bytes
        self._bytes = 0
        self._responses: OrderedDict[Key, tuple[float, Response]] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, key: Key) -> Response | None:
        with self._lock:
            if key not in self._responses:
                return None
            made, response = self._responses[key]
            if time.monotonic() - made > CACHE_SECONDS:
                self._remove(key)
                return None
            self._responses.move_to_end(key)
            return response

    def put(self, key: Key, response: Response) -> None:
        with self._lock:
            if key in self._responses:
                self._remove(key)
            self._responses[key] = time.monotonic(), response
            self._bytes += len(response.body)
            while self._bytes > self._most_bytes:
                self._remove(next(iter(self._responses)))

    def _remove(self, key: Key) -> None:
        self._bytes -= len(self._responses.pop(key)[1].body)


def cached(request: Request, respond: Callable[[], Response]) -> Response:
    """Return the response of an allowed GET, from the cache where nothing was pushed since it was made."""
    if request.method != "GET":
        return respond()
    cache: ResponseCache = request.app.state.cache
    key = _cache_key(request)
    response = cache.get(key)
    if response is None:
        response = respond()
        # One that sets a cookie is for one browser and one moment.
        if response.status_code == OK and "set-cookie" not in response.headers and hasattr(response, "body"):
            cache.put(key, response)
    return response


@functools.cache
def _version_select() -> Select[int]:
    return select(func.max(PackTable.id))


def _cache_key(request: Request) -> Key:
    with viewing(request) as connection:
        version = connection.execute(_version_select()).scalar_one() or 0
    digest = hashlib.sha256(f"{request.url.path}?{request.url.query}".encode())
    for name in KEY_HEADERS:
        digest.update(f"\n{name}: {request.headers.get(name, '')}".encode())
    return version, digest.hexdigest()
