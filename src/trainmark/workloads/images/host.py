"""The host loader: threads decode, cut, resize and flip straight into batches that are made ahead.

numpy and the standard library, Python 3.7+: the same batches, byte for byte, in every framework.
"""

import collections
import queue
import threading
import weakref

import numpy as np

from trainmark.workloads.common import chance
from trainmark.workloads.images import jpeg, sampling
from trainmark.workloads.images.dataset import BadImage
from trainmark.workloads.images.sampling import PADDING

AHEAD = 3  # batches in the making beside the one that is asked for
BATCHES_IN_USE = 2  # batches that stay untouched after they were given out
WHOLE_BATCH = -1  # the place of a task that is a whole batch

CropDraw = collections.namedtuple("CropDraw", "training least key")
# How the images of a pass are cut: `window(index)` for Python, `draw` for the decoder's own threads.
PassTask = collections.namedtuple("PassTask", "window draw substitute")


class HostLoader:
    """Batches of (uint8 pixels (batch, size, size, 3), int64 labels); one iterator a pass.

    `on_bad="stop"` raises BadImage where an image cannot be decoded. `"skip"` takes the next image of the
    split in its place (in evaluation none: an image twice would be counted twice) and counts it in `bad`,
    its name and the reason in `bad_names`.
    """

    def __init__(
        self,
        split,
        batch,
        size,
        rank=0,
        world_size=1,
        seed=0,
        workers=1,
        allocate=None,
        on_bad="stop",
        codec=None,
        least_area=sampling.AREA[0],
    ):
        self.split, self.batch, self.size = split, batch, size
        self.rank, self.world_size, self.seed = rank, world_size, seed
        self.workers, self.on_bad, self.least_area = max(1, workers), on_bad, least_area
        self.steps_per_epoch = sampling.steps_per_epoch(split.count, batch, world_size)
        self.bad_names = {}
        self.codec = jpeg.codec(codec)
        # Threads of Python, of which each hands whole batches to a decoder that has threads of its own. Were
        # they as many as the images in work, a training in this process would wait for the interpreter's lock
        # after every call of its framework. Two: one prepares while the other's batch is decoded.
        self.drivers = min(2, self.workers) if hasattr(self.codec, "batch") else 0
        self._allocate = allocate or np.empty
        self._free, self._given = [], collections.deque()
        self._passes = weakref.WeakSet()

    @property
    def bad(self):
        """How many images could not be used."""
        return len(self.bad_names)

    def training(self, epoch, first=0):
        """The batches of an epoch from batch number `first` on."""
        places = sampling.training_share(self.split.count, self.batch, self.rank, self.world_size)[first:]
        images = sampling.epoch_order(self.split.count, self.seed, epoch)

        def window(index):
            drawn_from = self.seed, epoch, index, self.least_area
            return lambda width, height: sampling.training_window(width, height, *drawn_from)

        draw = CropDraw(training=True, least=self.least_area, key=chance.key(self.seed, epoch))
        return self._pass((images[step] for step in places), window, draw, substitute=True)

    def evaluation(self):
        """Every image once over all ranks; as many batches on each, padded with zeros and the label -1."""
        batches = sampling.evaluation_images(self.split.count, self.batch, self.rank, self.world_size)

        def window(_):
            return lambda width, height: sampling.evaluation_window(width, height, self.size)

        draw = CropDraw(training=False, least=self.least_area, key=0)
        return self._pass(iter(batches), window, draw, substitute=False)

    def close(self):
        """Ends the threads of every iterator that is still open."""
        for one_pass in list(self._passes):
            one_pass.close()

    def _pass(self, steps, window, draw, substitute):
        made = HostPass(self, steps, PassTask(window, draw, substitute))
        self._passes.add(made)
        return made

    def take(self):
        """A buffer that nobody reads any more."""
        if self._free:
            return self._free.pop()
        shape = (self.batch, self.size, self.size, 3)
        return self._allocate(shape, np.dtype(np.uint8)), self._allocate((self.batch,), np.dtype(np.int64))

    def give_out(self, buffer):
        """What is given out now; what was given out two batches ago is free again."""
        self._given.append(buffer)
        if len(self._given) > BATCHES_IN_USE:
            self._free.append(self._given.popleft())
        return buffer

    def give_back(self, buffer):
        self._free.append(buffer)

    def fill_batch(self, buffer, indices, task):
        """By the decoder's own threads; what it could not make is looked at one by one, and named."""
        pixels, labels = buffer
        labels[:] = np.where(indices == PADDING, PADDING, self.split.labels[indices])
        with self.split.records(indices) as records:
            made = self.codec.batch(records, *task.draw, -(-self.workers // self.drivers), pixels)
        for place in np.flatnonzero(made == 0).tolist():
            self.fill(buffer, place, int(indices[place]), task)

    def fill(self, buffer, place, index, task):
        """Decodes one image into its place of a batch, or puts what stands for a bad one there."""
        pixels, labels = buffer
        decoded_index = PADDING
        if index != PADDING:
            decoded_index = self._decode(pixels[place], index, task.window, task.substitute)
        if decoded_index == PADDING:
            pixels[place] = 0
        labels[place] = self.split.labels[decoded_index] if decoded_index != PADDING else PADDING

    def _decode(self, out, index, window, substitute):
        """The index of the image that was decoded."""
        for step in range(self.split.count if substitute else 1):
            candidate = (index + step) % self.split.count
            try:
                self._decode_one(out, candidate, window)
                return candidate
            except BadImage as error:
                if self.on_bad != "skip":
                    raise
                self.bad_names[error.name] = str(error)
        if substitute:
            raise BadImage(self.split, index, "nor can any other image of the split be decoded")
        return PADDING

    def _decode_one(self, out, index, window):
        data = self.split.read(index)
        try:
            self.codec.decode(data, window(index), out)
        except jpeg.Undecodable as error:
            raise BadImage(self.split, index, str(error)) from error


class PendingBatch:
    """A batch in the making: how many places are still open, and what went wrong."""

    def __init__(self, buffer, places):
        self.buffer, self.left, self.error = buffer, places, None
        self.guard, self.done = threading.Lock(), threading.Event()

    def placed(self, error=None):
        with self.guard:
            self.left -= 1
            self.error = self.error or error
            if error or not self.left:
                self.done.set()


class HostPass:
    """One iterator over batches, with threads of its own that end with it."""

    def __init__(self, loader, steps, task):
        self._loader, self._steps = loader, steps
        self._work, self._coming = queue.SimpleQueue(), collections.deque()
        self._over = threading.Event()
        crew = _Workers(loader, task, self._work, self._over)
        self._threads = [
            threading.Thread(target=crew.work, name=f"trainmark-images-{number}", daemon=True)
            for number in range(loader.drivers or loader.workers)
        ]
        self._started = False

    def __iter__(self):
        return self

    def __next__(self):
        if self._over.is_set():
            raise StopIteration
        if not self._started:
            self._started = True
            for thread in self._threads:
                thread.start()
        while len(self._coming) <= AHEAD and self._schedule():
            pass
        if not self._coming:
            self.close()
            raise StopIteration
        coming = self._coming[0]
        try:
            coming.done.wait()
        except BaseException:
            self.close()
            raise
        if coming.error:
            self.close()
            raise coming.error
        self._coming.popleft()
        return self._loader.give_out(coming.buffer)

    def close(self):
        """Ends the threads; what they were making is thrown away."""
        if self._over.is_set():
            return
        self._over.set()
        for _ in self._threads:
            self._work.put(None)
        if self._started:
            for thread in self._threads:
                if thread is not threading.current_thread():  # the collector may run in any of them
                    thread.join()
        while self._coming:
            self._loader.give_back(self._coming.popleft().buffer)

    def __del__(self):
        if hasattr(self, "_threads"):
            self.close()

    def _schedule(self):
        step = next(self._steps, None)
        if step is None:
            return False
        whole = bool(self._loader.drivers)
        coming = PendingBatch(self._loader.take(), 1 if whole else len(step))
        self._coming.append(coming)
        for work in [(WHOLE_BATCH, step)] if whole else enumerate(step.tolist()):
            self._work.put((coming, *work))
        return True


class _Workers:
    """What the threads hold: not the iterator itself, which would then never be collected."""

    def __init__(self, loader, task, work, over):
        self._loader, self._task = loader, task
        self._work, self._over = work, over

    def work(self):
        while True:
            task = self._work.get()
            if task is None or self._over.is_set():
                return
            coming, place, index = task
            try:
                if place == WHOLE_BATCH:
                    self._loader.fill_batch(coming.buffer, index, self._task)
                else:
                    self._loader.fill(coming.buffer, place, index, self._task)
            except BaseException as error:  # noqa: BLE001 - whatever it is, the caller is to have it
                coming.placed(error)
            else:
                coming.placed()
