"""The API as a page: every operation of its OpenAPI document."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from trainmark.server.api.openapi import document
from trainmark.server.api.operation import PREFIX
from trainmark.server.pages.frame.respond import page


def api(request: Request) -> Response:
    operations = [
        (method.upper(), path, operation)
        for path, methods in sorted(document()["paths"].items())
        for method, operation in methods.items()
    ]
    return page(request, "api.html.j2", "api", operations=operations, document=f"{PREFIX}/openapi.json")
