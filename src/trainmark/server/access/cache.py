"""Responses that were made once and are sent again while nothing has been pushed since.

Asked only after a request has been allowed, and by the cookie or token that asked: nobody sees what was made
for another. The least recently used go first, so that memory stays bounded.
"""

from __future__ import annotations

import functools
import hashlib
import threading
import time
from collections import OrderedDict
from collections.abc import Callable

from sqlalchemy import Select, func, select
from starlette.requests import Request
from starlette.responses import Response

from trainmark.server.access.view import viewing
from trainmark.server.database.models import Pack

# What a page says of the time since something must not grow old.
SECONDS = 60.0
MOST_BYTES = 8 << 20
OK = 200
# What a response depends on beside the address and the data.
HEADERS = ("cookie", "authorization", "accept-language", "accept", "host")

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
            if time.monotonic() - made > SECONDS:
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
    key = _key(request)
    response = cache.get(key)
    if response is None:
        response = respond()
        # One that sets a cookie is for one browser and one moment.
        if response.status_code == OK and "set-cookie" not in response.headers and hasattr(response, "body"):
            cache.put(key, response)
    return response


@functools.cache
def _version_select() -> Select[int]:
    return select(func.max(Pack.id))


def _key(request: Request) -> Key:
    with viewing(request) as connection:
        version = connection.execute(_version_select()).scalar_one() or 0
    digest = hashlib.sha256(f"{request.url.path}?{request.url.query}".encode())
    for name in HEADERS:
        digest.update(f"\n{name}: {request.headers.get(name, '')}".encode())
    return version, digest.hexdigest()
