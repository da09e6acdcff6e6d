"""A browser without a window: requests to a server in this process, with a jar of cookies."""

from __future__ import annotations

import asyncio

import httpx

ORIGIN = "http://site.example"


class Client:
    """Keeps cookies; with a token every request bears it."""

    def __init__(self, app, token: str = "") -> None:
        self._app, self._token = app, token
        self.cookies = httpx.Cookies()

    def get(self, path: str, **headers: str) -> httpx.Response:
        return self._send("GET", path, headers, None)

    def post(self, path: str, fields: dict[str, str], **headers: str) -> httpx.Response:
        return self._send("POST", path, {"origin": ORIGIN, **headers}, fields)

    def put(self, path: str) -> httpx.Response:
        return self._send("PUT", path, {}, None)

    def _send(self, method, path, headers, fields) -> httpx.Response:
        own = {"accept": "text/html,*/*;q=0.8"}
        own |= {"authorization": f"Bearer {self._token}"} if self._token else {}

        async def send() -> httpx.Response:
            transport = httpx.ASGITransport(self._app, raise_app_exceptions=False)
            async with httpx.AsyncClient(
                transport=transport, base_url=ORIGIN, cookies=self.cookies
            ) as client:
                answer = await client.request(method, path, headers={**own, **headers}, data=fields)
                self.cookies = client.cookies
                return answer

        return asyncio.run(send())
