"""All routes of the API."""

from __future__ import annotations

from starlette.routing import BaseRoute, Route

from trainmark.server.api.openapi import document_route
from trainmark.server.api.operation import PREFIX
from trainmark.server.api.operations import OPERATIONS
from trainmark.server.api.push import download, push


def routes() -> list[BaseRoute]:
    return [
        document_route(),
        Route(f"{PREFIX}/packs", push, methods=["POST"]),
        Route(f"{PREFIX}/packs/{{sha256}}", download, methods=["GET"]),
        *(operation.route() for operation in OPERATIONS),
    ]
