"""The body of a form, read only once whoever sends it may, and no further than a form goes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from urllib.parse import parse_qsl

import anyio.to_thread
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

MEDIA_TYPE = "application/x-www-form-urlencoded"
LARGEST_FORM_BYTES = 16 << 10
MOST_FIELDS = 10


async def form_fields(request: Request) -> dict[str, str]:
    """Return the fields of a form; HTTPException where it is none of ours or larger than any of them."""
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != MEDIA_TYPE:
        raise HTTPException(400, f"a form is sent as {MEDIA_TYPE}.")
    announced = request.headers.get("content-length", "")
    if announced.isdecimal() and int(announced[:20]) > LARGEST_FORM_BYTES:
        raise _too_large()
    body = bytearray()
    try:
        async for chunk in request.stream():
            body += chunk
            if len(body) > LARGEST_FORM_BYTES:
                raise _too_large()
        return dict(parse_qsl(body.decode(), keep_blank_values=True, max_num_fields=MOST_FIELDS))
    except ClientDisconnect as error:
        raise HTTPException(400, "the connection ended before the form did.") from error
    except ValueError as error:
        raise HTTPException(400, "this is no form of ours.") from error


async def changing(function: Callable[..., Response], request: Request, *more: Any) -> Response:
    """Call what writes to the database in a thread of its own kind: where it has to wait, pages do not."""
    limiter = request.app.state.form_threads
    return await anyio.to_thread.run_sync(function, request, *more, limiter=limiter)


def _too_large() -> HTTPException:
    return HTTPException(413, f"a form may have {LARGEST_FORM_BYTES >> 10} KiB at most.")
