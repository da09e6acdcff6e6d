"""All routes of the API."""

from __future__ import annotations

from starlette.routing import BaseRoute

from trainmark.server.api.operations import OPERATIONS


def routes() -> list[BaseRoute]:
    return [operation.route() for operation in OPERATIONS]
