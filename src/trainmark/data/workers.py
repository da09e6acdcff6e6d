"""Tasks carried out by processes that end with the one that started them, and how far each task is."""

from __future__ import annotations

import contextlib
import ctypes
import mmap
import multiprocessing
import os
import signal
import struct
import sys
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from itertools import islice
from pathlib import Path
from typing import TypeVar

import numpy as np

from trainmark.base.errors import UserError

Task = TypeVar("Task")
Answer = TypeVar("Answer")
# So many wait for each worker: enough that none stands idle, few enough that memory stays flat.
AHEAD = 3
PARENT_DEATH_SIGNAL = 1


def in_parallel(
    function: Callable[[Task], Answer], tasks: Iterable[Task], workers: int
) -> Iterator[tuple[Task, Answer]]:
    """Each task with its answer, as they come; in this process where one worker is wanted.

    The function must be importable by name. What it raises is raised here, and the other workers end.
    """
    if workers == 1:
        yield from ((task, function(task)) for task in tasks)
        return
    # Not forked: a progress display has threads, and a fork of a process with threads may hang.
    pool = ProcessPoolExecutor(workers, multiprocessing.get_context("spawn"), _begin, (os.getpid(),))
    todo = iter(tasks)
    running: dict[Future[Answer], Task] = {
        pool.submit(function, task): task for task in islice(todo, workers * AHEAD)
    }
    try:
        while running:
            done, _ = wait(running, return_when=FIRST_COMPLETED)
            for future in done:
                yield running.pop(future), future.result()
            for task in islice(todo, len(done)):
                running[pool.submit(function, task)] = task
    except BrokenProcessPool as error:
        raise UserError(
            "a worker was killed, perhaps for want of memory; start the command again, with fewer --workers."
        ) from error
    finally:
        # Tasks that are being carried out end first: what they write is whole.
        pool.shutdown(wait=True, cancel_futures=True)


def available_processors() -> int:
    """Processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _begin(parent: int) -> None:
    """Ctrl-C is the parent's to answer, and a worker must not outlive it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if sys.platform == "linux":
        with contextlib.suppress(OSError, AttributeError):
            ctypes.CDLL(None).prctl(PARENT_DEATH_SIGNAL, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)


NUMBER = struct.Struct("<Q")
PROGRESS_FILE = "progress"


def prepare_progress(journal: Path, tasks: int) -> None:
    (journal / PROGRESS_FILE).write_bytes(bytes(NUMBER.size * max(tasks, 1)))


def pictures_done(journal: Path) -> int:
    """Pictures that are done, over all tasks."""
    try:
        return int(np.fromfile(journal / PROGRESS_FILE, "<u8").sum())
    except OSError:
        return 0


class TaskCounter:
    """A task's own number."""

    def __init__(self, journal: Path, slot: int) -> None:
        with (journal / PROGRESS_FILE).open("r+b") as file:
            self._pages = mmap.mmap(file.fileno(), 0)
        self._at = slot * NUMBER.size
        self._value = 0

    def add(self, count: int) -> None:
        self.finish(self._value + count)

    def finish(self, value: int) -> None:
        self._value = value
        NUMBER.pack_into(self._pages, self._at, value)

    def close(self) -> None:
        self._pages.close()
