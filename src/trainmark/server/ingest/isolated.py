"""Checking a packed file in a process of its own, with bounds on memory, files and time.

A file that exhausts them costs its own process only, and the memory it took goes with it. The processes come
from a fork server that has everything imported: each starts in milliseconds, and dies with the server.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import resource
import shutil
import signal
import tempfile
from dataclasses import asdict, replace
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from trainmark.base import typed_json
from trainmark.base.errors import UserError
from trainmark.server.faults import FAILING, FULL, READ_ONLY, Fault, fault_of
from trainmark.server.ingest.check import CheckedRun, IngestError, check, plain
from trainmark.server.settings import ServerSettings
from trainmark.store.tarball import LIMITS, UnpackedSizeError, UnpackLimits

PRELOAD = "trainmark.server.ingest.preload"
LARGEST_ANSWER_BYTES = 256 << 20
# A file may unpack to so many times the largest that may be pushed.
MOST_UNPACKED = 8
CONTEXT = multiprocessing.get_context("forkserver")


def warm_up() -> None:
    """Start the fork server, so that the first push need not wait for its imports."""
    CONTEXT.set_forkserver_preload([PRELOAD])
    process = CONTEXT.Process(target=_nothing)
    process.start()
    process.join()


def _nothing() -> None:
    """Return at once."""


def check_isolated(file: Path, settings: ServerSettings) -> CheckedRun:
    """Return the rows of a packed file; IngestError where it is refused or exceeds its bounds."""
    CONTEXT.set_forkserver_preload([PRELOAD])
    ours, theirs = CONTEXT.Pipe(duplex=False)
    folder = Path(tempfile.mkdtemp(dir=settings.incoming, prefix="check-"))
    signers = str(settings.allowed_signers) if settings.allowed_signers else None
    most = min(LIMITS.total_bytes, settings.largest_pack_bytes * MOST_UNPACKED)
    room = max(0, settings.room_bytes() // settings.checks_at_once)
    arguments = (
        theirs,
        str(file),
        str(folder),
        signers,
        settings.check_memory_bytes,
        settings.check_seconds,
        replace(LIMITS, total_bytes=min(most, room)),
        room < most,
    )
    process = CONTEXT.Process(target=_check, args=arguments, daemon=True)
    try:
        process.start()
        theirs.close()
        return _answer(ours, settings.check_seconds)
    finally:
        ours.close()
        process.kill()
        process.join()
        shutil.rmtree(folder, ignore_errors=True)


def _answer(connection: Connection, seconds: float) -> CheckedRun:
    try:
        if not connection.poll(seconds):
            raise IngestError(
                f"the file took longer than {seconds:g} s to check; pack fewer trials in one run."
            )
        answer = connection.recv_bytes(LARGEST_ANSWER_BYTES)
    except (EOFError, OSError) as error:
        raise IngestError("the file needs more memory to check than the server gives it.") from error
    kind, _, body = answer.partition(b"\n")
    if kind == b"checked":
        return typed_json.decode(CheckedRun, json.loads(body))
    refused = json.loads(body)
    raise IngestError(refused["sentence"], refused["status"], tuple(refused["differences"]))


def _check(
    answers: Connection,
    file: str,
    folder: str,
    signers: str | None,
    memory_bytes: int,
    seconds: float,
    limits: UnpackLimits,
    for_want_of_room: bool,
) -> None:
    """What runs in the process; `for_want_of_room` says that the disk, not a rule, limits the size."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_AS, (memory_bytes, memory_bytes))
    resource.setrlimit(resource.RLIMIT_CPU, (int(seconds) + 1, int(seconds) + 1))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    os.environ["TMPDIR"] = tempfile.tempdir = folder
    own = Path(folder) / "run"
    try:
        checked = check(Path(file), own, Path(signers) if signers else None, limits)
        answers.send_bytes(b"checked\n" + json.dumps(asdict(checked), allow_nan=False).encode())
    except UserError as error:
        fault = _of_disk(error)
        if for_want_of_room and isinstance(error, UnpackedSizeError):
            fault = FULL
        if fault is not None:
            return _refuse(answers, fault.sentence, fault.status)
        status = error.status if isinstance(error, IngestError) else 422
        differences = error.differences if isinstance(error, IngestError) else ()
        _refuse(answers, _without_paths(plain(str(error)), file, folder), status, differences)
    except MemoryError:
        _refuse(answers, "the file needs more memory to check than the server gives it.")
    except Exception as error:  # noqa: BLE001 - whatever a hostile file brings about, it is refused
        fault = _of_disk(error) or Fault(422, f"the file cannot be checked: {type(error).__name__}.")
        _refuse(answers, fault.sentence, fault.status)


def _of_disk(error: BaseException) -> Fault | None:
    """Return the trouble of the server's disk; want of memory or of descriptors is the file's own here."""
    fault = fault_of(error)
    return fault if fault in (FULL, FAILING, READ_ONLY) else None


def _without_paths(sentence: str, file: str, folder: str) -> str:
    """Say `the file` in place of where the server keeps it."""
    return sentence.replace(f"{folder}/run/", "").replace(folder, "the file").replace(file, "the file")


def _refuse(answers: Connection, sentence: str, status: int = 422, differences: Any = ()) -> None:
    body = {"sentence": sentence, "status": status, "differences": differences}
    answers.send_bytes(b"refused\n" + json.dumps(body).encode())
