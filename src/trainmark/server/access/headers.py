"""Headers that tell browsers to run and load nothing but our own files."""

from __future__ import annotations

import logging
from collections.abc import Callable

from starlette.concurrency import run_in_threadpool
from starlette.datastructures import MutableHeaders
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

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
HEADERS = {
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
        self.headers = {**HEADERS, **({"Strict-Transport-Security": f"max-age={YEAR}"} if secure else {})}

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
