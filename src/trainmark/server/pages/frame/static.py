"""The static files, under names that change with their content."""

from __future__ import annotations

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from trainmark.server.pages.frame.assets import by_hashed_name

FOR_GOOD = "public, max-age=31536000, immutable"


async def static(request: Request) -> Response:
    asset = by_hashed_name().get(request.path_params["name"])
    if asset is None:
        raise HTTPException(404)
    return Response(asset.content, media_type=asset.media_type, headers={"Cache-Control": FOR_GOOD})
