"""One install at a time: whoever comes second waits, and is told why."""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Callable, Iterator

from trainmark.environments.place import EnvironmentFiles


@contextlib.contextmanager
def alone(place: EnvironmentFiles, tell: Callable[[str], None]) -> Iterator[int]:
    """Yields a descriptor that holds the place as long as any process has it open.

    pip gets it too: should Trainmark be killed, no other install begins before that pip is gone.
    """
    place.guard.parent.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(place.guard, os.O_RDWR | os.O_CREAT, 0o644)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            tell(f"{place.name}: another install or removal is at work; waiting for it to end")
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield descriptor
    finally:
        os.close(descriptor)
