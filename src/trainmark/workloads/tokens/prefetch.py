"""Batches made ahead by a thread, so that a step never waits for them."""

import queue
import threading

AHEAD = 3  # batches that lie ready
IN_USE = 2  # batches that stay untouched after they were given out
RING = AHEAD + IN_USE + 2  # with the one in the making and the one being handed over
POLL_SECONDS = 0.1
END = object()


class Prefetched:
    """An iterator over `make(step)` for all steps; what `make` raises is raised by `next`."""

    def __init__(self, make, steps):
        self._ready, self._over = queue.Queue(AHEAD), threading.Event()
        arguments = make, iter(steps), self._ready, self._over
        # The thread does not hold this iterator, which would then never be collected.
        self._thread = threading.Thread(target=_work, args=arguments, name="trainmark-tokens", daemon=True)
        self._started = False

    def __iter__(self):
        return self

    def __next__(self):
        if self._over.is_set():
            raise StopIteration
        if not self._started:
            self._started = True
            self._thread.start()
        batch, error = self._ready.get()
        if batch is END:
            self.close()
            if error:
                raise error
            raise StopIteration
        return batch

    def close(self):
        """End the thread; what it has made is thrown away."""
        if self._over.is_set():
            return
        self._over.set()
        while not self._ready.empty():  # so that a thread which waits for room sees the end at once
            self._ready.get_nowait()
        if self._started and self._thread is not threading.current_thread():
            self._thread.join()

    def __del__(self):
        if hasattr(self, "_thread"):
            self.close()


def _work(make, steps, ready, over):
    try:
        for step in steps:
            if not _put(ready, over, (make(step), None)):
                return
    except BaseException as error:  # noqa: BLE001 - whatever it is, the caller is to have it
        _put(ready, over, (END, error))
    else:
        _put(ready, over, (END, None))


def _put(ready, over, item):
    """Whether it was taken before the end."""
    while not over.is_set():
        try:
            ready.put(item, timeout=POLL_SECONDS)
            return True
        except queue.Full:
            pass
    return False
