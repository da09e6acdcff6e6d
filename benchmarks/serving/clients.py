"""Clients that ask for pages at once, each over one connection, in one thread: the server needs the cores."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from random import Random
from urllib.parse import urlsplit

LENGTH = b"content-length:"


def times(url: str, token: str, path: Callable[[Random], str], clients: int, requests: int) -> list[float]:
    """Return the seconds of each request; a client asks again once it has the whole answer."""
    return [second for own in asyncio.run(_all(url, token, path, clients, requests)) for second in own]


async def _all(
    url: str, token: str, path: Callable[[Random], str], clients: int, requests: int
) -> Sequence[Sequence[float]]:
    chances = map(Random, range(clients))
    return await asyncio.gather(*(_client(url, token, path, chance, requests) for chance in chances))


async def _client(
    url: str, token: str, path: Callable[[Random], str], chance: Random, requests: int
) -> list[float]:
    place = urlsplit(url)
    reader, writer = await asyncio.open_connection(place.hostname, place.port)
    seconds = []
    try:
        for _ in range(requests):
            address, began = path(chance), time.perf_counter()
            lines = (f"GET {address} HTTP/1.1", f"Host: {place.netloc}", f"Authorization: Bearer {token}")
            writer.write("\r\n".join((*lines, "", "")).encode())
            head = (await reader.readuntil(b"\r\n\r\n")).lower()
            (length,) = (line for line in head.split(b"\r\n") if line.startswith(LENGTH))
            await reader.readexactly(int(length[len(LENGTH) :]))
            seconds.append(time.perf_counter() - began)
            if not head.startswith(b"http/1.1 200"):
                raise RuntimeError(f"{address}: {head.splitlines()[0].decode()}")
    finally:
        writer.close()
    return seconds
