"""`POST /api/v1/packs`: a packed file comes in; `GET /api/v1/packs/SHA256`: it goes out again."""

from __future__ import annotations

import re

import anyio.to_thread
from sqlalchemy import select
from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect, Request
from starlette.responses import FileResponse, JSONResponse, Response

from trainmark.server.access.guard import (
    UNKNOWN_TOKEN,
    address_of,
    error,
    identity_of,
    refusal,
    requires_token,
    viewing,
)
from trainmark.server.access.tokens import Role
from trainmark.server.database.models import PackTable
from trainmark.server.faults import RETRY_SECONDS
from trainmark.server.ingest.check import TOO_LARGE, IngestError
from trainmark.server.ingest.ingest import Upload, pack_path
from trainmark.server.ingest.store import Stored

MEDIA_TYPE = "application/vnd.trainmark.store"
SHA256 = re.compile(r"[0-9a-f]{64}")
DIGEST = "x-content-sha256"
# More than this is written from a thread, so that a slow disc does not stop other requests.
BUFFER_BYTES = 1 << 20


async def push(request: Request) -> Response:
    """Answer 201 for a new run and 200 for a file that is stored already, only once it is durable."""
    refused = await run_in_threadpool(refusal, request, Role.PUSH)
    if refused is not None:
        return refused
    if too_large := _announced_too_large(request):
        return too_large
    upload = None
    try:
        upload = await run_in_threadpool(Upload, request.app.state.settings)
        await _receive(request, upload)
        announced = request.headers.get(DIGEST)
        if announced is not None and announced.lower() != upload.sha256:
            return error(400, "the file was damaged on its way: its SHA-256 is another; push again.")
        # Waiting pushes have threads of their own, so that pages go on.
        threads = request.app.state.push_threads
        stored = await anyio.to_thread.run_sync(_take, request, upload, limiter=threads)
    except IngestError as problem:
        retry = {"Retry-After": str(RETRY_SECONDS)} if problem.status >= 500 else None
        return error(problem.status, str(problem), retry, differences=list(problem.differences))
    except ClientDisconnect:
        return error(400, "the connection ended before the file did.")
    finally:
        if upload is not None:
            await run_in_threadpool(upload.close)
    body = {"run": stored.uuid, "sha256": stored.sha256, "new": stored.new, "url": f"/runs/{stored.uuid}"}
    return JSONResponse(body, 201 if stored.new else 200)


def _take(request: Request, upload: Upload) -> Stored:
    identity = identity_of(request)
    if identity is None:
        raise IngestError(UNKNOWN_TOKEN, 401)
    stored: Stored = request.app.state.ingest.take(upload, identity, address_of(request))
    request.app.state.webhook.tell(stored.changed, str(request.base_url))
    return stored


async def _receive(request: Request, upload: Upload) -> None:
    waiting = bytearray()
    async for chunk in request.stream():
        waiting += chunk
        if len(waiting) >= BUFFER_BYTES:
            await run_in_threadpool(upload.write, bytes(waiting))
            waiting.clear()
    await run_in_threadpool(upload.write, bytes(waiting))


def _announced_too_large(request: Request) -> Response | None:
    length = request.headers.get("content-length", "")
    limit = request.app.state.settings.largest_pack_bytes
    if length.isdecimal() and int(length[:20]) > limit:
        return error(TOO_LARGE, f"a packed file may have {limit >> 20:,} MiB at most.")
    return None


@requires_token(Role.READ)
def download(request: Request) -> Response:
    """Return the very file that was pushed."""
    sha256 = request.path_params["sha256"]
    with viewing(request) as connection:
        stored = (
            SHA256.fullmatch(sha256)
            and connection.execute(
                select(PackTable.id).where(PackTable.sha256 == sha256)
            ).scalar_one_or_none()
        )
    if not stored:
        return error(404, "there is no such file here.")
    path = pack_path(request.app.state.settings, sha256)
    return FileResponse(path, media_type=MEDIA_TYPE, filename=path.name)
