"""Jobs carried out by processes that end with the one that started them, and how much of them is done."""

from __future__ import annotations

import contextlib
import ctypes
import multiprocessing
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import AbstractContextManager
from dataclasses import dataclass
from itertools import islice
from typing import Any, Generic, TypeVar

from trainmark.base.errors import UserError

Answer = TypeVar("Answer")
Progress = Callable[[int, int], None]
# So many wait for each worker: enough that none stands idle, few enough that memory stays flat.
AHEAD = 3
PARENT_DEATH_SIGNAL = 1
SECONDS_BETWEEN_LOOKS = 0.25


@dataclass(frozen=True)
class Job(Generic[Answer]):
    """A call, of a function that can be imported by name, and how much of the progress it is.

    `key` is its name in the journal of a set in the making.
    """

    function: Callable[..., Answer]
    arguments: tuple[Any, ...]
    size: int = 1
    key: str = ""


class Counter:
    """What is done, where there is one process: a semaphore would outlive one that is killed."""

    def __init__(self, value: int) -> None:
        self.value = value

    def get_lock(self) -> AbstractContextManager[None]:
        return contextlib.nullcontext()


def no_progress(done: int, total: int) -> None:
    """Where nobody watches."""


def results(
    jobs: Sequence[Job[Answer]], workers: int, progress: Progress = no_progress, done_before: int = 0
) -> Iterator[tuple[Job[Answer], Answer]]:
    """Each job with its answer, as they come; in this process where one worker is wanted.

    What a job raises is raised here, and the other workers end.
    """
    global _done, _show
    total = done_before + sum(job.size for job in jobs)
    workers = max(1, min(workers, len(jobs)))
    progress(done_before, total)
    if workers == 1:
        here = Counter(done_before)
        for job in jobs:
            _done, _show = here, lambda: progress(here.value, total)
            answer = _carry_out(job)
            _show()
            yield job, answer
        return
    # Not forked: a progress display has threads, and a fork of a process with threads may hang.
    context = multiprocessing.get_context("spawn")
    done = context.Value("Q", done_before)
    pool = ProcessPoolExecutor(workers, context, _begin, (os.getpid(), done))
    todo = iter(jobs)
    running: dict[Future[Answer], Job[Answer]] = {
        pool.submit(_carry_out, job): job for job in islice(todo, workers * AHEAD)
    }
    try:
        while running:
            ended, _still = wait(running, SECONDS_BETWEEN_LOOKS, FIRST_COMPLETED)
            progress(done.value, total)
            for future in ended:
                yield running.pop(future), future.result()
            for job in islice(todo, len(ended)):
                running[pool.submit(_carry_out, job)] = job
    except BrokenProcessPool as error:
        raise UserError(
            "a worker was killed, perhaps for want of memory; start the command again, with fewer --workers."
        ) from error
    finally:
        # Jobs that are being carried out end first: what they write is whole.
        pool.shutdown(wait=True, cancel_futures=True)


# Of this process, which carries out one job at a time: what is done over all workers, what in this job, and
# how it is shown where there are no other workers.
_done: Any = None
_done_in_job = 0
_show: Callable[[], None] | None = None
_shown_at = 0.0


def count(number: int) -> None:
    """Called by a long job: so much of it is done."""
    global _done_in_job, _shown_at
    _done_in_job += number
    with _done.get_lock():
        _done.value += number
    if _show and time.monotonic() > _shown_at + SECONDS_BETWEEN_LOOKS:
        _shown_at = time.monotonic()
        _show()


def _carry_out(job: Job[Answer]) -> Answer:
    global _done_in_job
    _done_in_job = 0
    answer = job.function(*job.arguments)
    count(job.size - _done_in_job)
    return answer


def available_processors() -> int:
    """Processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _begin(parent: int, done: Any) -> None:
    """Ctrl-C is the parent's to answer, and a worker must not outlive it."""
    global _done
    _done = done
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if sys.platform == "linux":
        with contextlib.suppress(OSError, AttributeError):
            ctypes.CDLL(None).prctl(PARENT_DEATH_SIGNAL, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)
