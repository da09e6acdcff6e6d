"""A folder as one archive, named by its content, brought to the nodes that lack it.

It is sent to several at the same time, and never whole in memory.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import os
import tarfile
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from trainmark.launch.connection import AgentConnection, Poller, gather
from trainmark.launch.nodes import NodeError

PIECE_BYTES = 1 << 20
LEFT_OUT = frozenset({"__pycache__", ".git", ".venv", "runs", ".mypy_cache", ".pytest_cache", ".ruff_cache"})


@dataclass(frozen=True)
class FolderArchive:
    """`folder` is what it stands for here; `name` is its content's; `there` are nodes that have it."""

    folder: Path
    name: str
    pieces: Callable[[], Iterator[bytes]]
    there: frozenset[str] = frozenset()


def archive_of(folder: Path) -> FolderArchive:
    """Of a folder of code: the same bytes for the same content, whenever and by whomever it was written."""
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w") as archive:
        for path in sorted(_files(folder)):
            entry = archive.gettarinfo(path, arcname=str(path.relative_to(folder)))
            entry.mtime, entry.uid, entry.gid, entry.uname, entry.gname = 0, 0, 0, "", ""
            with path.open("rb") as file:
                archive.addfile(entry, file)
    packed = data.getvalue()
    cuts = range(0, len(packed), PIECE_BYTES)
    name = hashlib.sha256(packed).hexdigest()
    return FolderArchive(folder, name, lambda: (packed[start : start + PIECE_BYTES] for start in cuts))


def archive_of_environment(folder: Path, content: str, there: frozenset[str]) -> FolderArchive:
    """Of gigabytes, packed while it is sent; `content` is the hash that nodes compare such folders by."""

    def pieces() -> Iterator[bytes]:
        read, write = os.pipe()
        packer = threading.Thread(target=_pack, args=(folder, write), daemon=True)
        packer.start()
        with os.fdopen(read, "rb") as packed:
            yield from iter(lambda: packed.read(PIECE_BYTES), b"")
        packer.join()

    return FolderArchive(folder, content, pieces, there)


def _pack(folder: Path, write: int) -> None:
    with (
        contextlib.suppress(BrokenPipeError),
        os.fdopen(write, "wb") as out,
        tarfile.open(fileobj=out, mode="w|") as archive,
    ):
        archive.add(folder, arcname=".", filter=lambda entry: None if "__pycache__" in entry.name else entry)


def folder_bytes(folder: Path) -> int:
    return sum(path.stat().st_size for path in _files(folder))


def _files(folder: Path) -> Iterator[Path]:
    for path in folder.iterdir():
        if path.name in LEFT_OUT:
            continue
        if path.is_dir() and not path.is_symlink():
            yield from _files(path)
        elif path.is_file():
            yield path


DELIVERY_SECONDS = 600.0
# Each may have some megabytes waiting to be sent to it.
SENT_AT_ONCE = 16
TICK_SECONDS = 1.0


def deliver(
    connections: Sequence[AgentConnection], archives: Sequence[FolderArchive]
) -> list[dict[str, str] | NodeError]:
    """Return for each connection where each folder lies on its node, or why it could not be brought there."""
    places: dict[AgentConnection, dict[str, str]] = {connection: {} for connection in connections}
    failed: dict[AgentConnection, NodeError] = {}
    for archive in archives:
        lacking = [
            connection
            for connection in connections
            if connection not in failed and connection.node.name not in archive.there
        ]
        at_once = 0
        while lacking:
            # To one first, and then all are asked again: where they share a home, it has come to all of them.
            paths = {
                **dict(zip(lacking, _send(archive, lacking[:at_once], connections), strict=False)),
                **_ask_whether_there(archive, lacking[at_once:], connections),
            }
            at_once = SENT_AT_ONCE if at_once else 1
            for connection, path in paths.items():
                if isinstance(path, NodeError):
                    failed[connection] = path
                elif path is not None:
                    places[connection][str(archive.folder)] = path
            lacking = [connection for connection in lacking if paths[connection] is None]
    return [failed.get(connection, places[connection]) for connection in connections]


def _ask_whether_there(
    archive: FolderArchive, connections: Sequence[AgentConnection], beside: Sequence[AgentConnection]
) -> dict[AgentConnection, str | NodeError | None]:
    """The path that it has on each node; None where it is not there."""
    for connection in connections:
        connection.send({"do": "have", "name": archive.name})
    paths: dict[AgentConnection, str | NodeError | None] = {}
    for connection, answer in zip(connections, gather(connections, "have", beside=beside), strict=True):
        if isinstance(answer, NodeError):
            paths[connection] = answer
        else:
            paths[connection] = str(answer[0]["path"]) if answer[0].get("path") else None
    return paths


def _send(
    archive: FolderArchive, batch: Sequence[AgentConnection], beside: Sequence[AgentConnection]
) -> list[str | NodeError]:
    """The archive to each of a batch, read once; the path that it has there, or why it has none."""
    if not batch:
        return []
    failed: dict[AgentConnection, NodeError] = {}
    digest = hashlib.sha256()
    with Poller({*batch, *beside}) as poller:
        for piece in archive.pieces():
            digest.update(piece)
            for connection in batch:
                if connection not in failed:
                    connection.send({"do": "piece"}, piece)
            _pump([connection for connection in batch if connection not in failed], poller, failed)
    sent = [connection for connection in batch if connection not in failed]
    for connection in sent:
        connection.send({"do": "unpack", "name": archive.name, "sha256": digest.hexdigest()})
    paths: dict[AgentConnection, str | NodeError] = {**failed}
    for connection, answer in zip(sent, gather(sent, "have", DELIVERY_SECONDS, beside=beside), strict=True):
        paths[connection] = answer if isinstance(answer, NodeError) else str(answer[0].get("path"))
    return [paths[connection] for connection in batch]


def _pump(
    connections: Sequence[AgentConnection], poller: Poller, failed: dict[AgentConnection, NodeError]
) -> None:
    """Wait until each has taken nearly all that was sent: a large archive is never whole in memory."""
    deadline = poller.clock.now + DELIVERY_SECONDS
    while clogged := [
        connection for connection in connections if connection.clogged and connection not in failed
    ]:
        if poller.clock.now > deadline:
            reason = f"it took nothing of what was sent for {DELIVERY_SECONDS:.0f} s"
            failed.update({connection: NodeError(connection.node.name, reason) for connection in clogged})
        for connection in poller.wait(TICK_SECONDS):
            for message, _ in connection.receive():
                if message.get("event") == "trouble":
                    failed[connection] = NodeError(connection.node.name, str(message.get("reason")))
    failed.update(
        {
            connection: NodeError(connection.node.name, connection.closed)
            for connection in connections
            if connection.closed
        }
    )
