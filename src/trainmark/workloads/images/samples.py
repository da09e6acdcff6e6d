"""What the frameworks' own loaders share: the sets they read, which images a rank has, and padding.

For those whose workers are processes, one image after another: Pillow decodes, numpy normalises.
"""

import itertools

import numpy as np

from trainmark.workloads.images import dataset, jpeg, sampling
from trainmark.workloads.images.sampling import PADDING

MEAN = np.array(sampling.MEAN, np.float32)
SCALE = 1 / np.array(sampling.DEVIATION, np.float32)


class Samples:
    """What a map-style dataset needs: `len` and `[i]`; `epoch` None to evaluate."""

    def __init__(self, opt, split, epoch, images):
        self.size, self.seed, self.layout = opt.image_size, opt.seed, opt.layout
        self.split, self.epoch, self.images = split, epoch, images
        self._codec = None

    def __len__(self):
        return len(self.images)

    def __getitem__(self, place):
        index = int(self.images[place])
        pixels = np.zeros((self.size, self.size, 3), np.uint8)
        if index == PADDING:
            return self._normalised(pixels), np.int64(PADDING)
        if self._codec is None:  # here: each worker has its own
            self._codec = jpeg.codec("pillow")
        try:
            self._codec.decode(self.split.read(index), lambda *size: self._window(index, *size), pixels)
        except jpeg.Undecodable as error:
            raise dataset.BadImage(self.split, index, str(error)) from error
        return self._normalised(pixels), np.int64(self.split.labels[index])

    def _window(self, index, width, height):
        if self.epoch is None:
            return sampling.evaluation_window(width, height, self.size)
        return sampling.training_window(width, height, self.seed, self.epoch, index)

    def _normalised(self, pixels):
        image = (pixels - MEAN) * SCALE
        return np.ascontiguousarray(image.transpose(2, 0, 1)) if self.layout == "NCHW" else image


class OwnLoader:
    """One framework's way from images on disk to batches: `training(epoch, first)` and `evaluation()`.

    It reads sets of these `formats`, of any where none is named; if `repeatable`, with the same crops again.
    """

    formats, repeatable = (), False

    def __init__(self, opt):
        if self.formats:
            dataset.require_format(opt.dataset, *self.formats)
        self.opt = opt
        self.train = dataset.open_split(opt.dataset, "train")
        self.val = dataset.open_split(opt.dataset, "val")

    def training_steps(self):
        return sampling.steps_per_epoch(self.train.count, self.opt.batch, self.opt.world_size)

    def training_images(self, epoch, first):
        """(batches, batch) images of this rank from batch `first` on, in the order of the epoch."""
        opt, count = self.opt, self.train.count
        places = sampling.training_share(count, opt.batch, opt.rank, opt.world_size)[first:]
        return sampling.epoch_order(count, opt.seed, epoch)[places]

    def evaluation_share(self):
        """The images that this rank evaluates."""
        return sampling.evaluation_share(self.val.count, self.opt.rank, self.opt.world_size)

    def evaluation_batches(self):
        return sampling.evaluation_batches(self.val.count, self.opt.batch, self.opt.world_size)

    def evaluation_images(self):
        """(batches, batch) images of this rank, as many batches on every rank, -1 where there is none."""
        opt = self.opt
        return sampling.evaluation_images(self.val.count, opt.batch, opt.rank, opt.world_size)

    def padded(self, batches, empty):
        """Yield as many batches on every rank, those that `fill` makes whole; `empty` has no image."""
        endless = itertools.chain(batches, itertools.repeat(empty))
        for images, labels in itertools.islice(endless, self.evaluation_batches()):
            short = self.opt.batch - len(labels)
            yield self.fill(images, labels, short) if short else (images, labels)


class PillowLoader(OwnLoader):
    """A map-style dataset in worker processes; a framework gives `loader(samples)`."""

    repeatable = True

    def __init__(self, opt):
        try:
            jpeg.codec("pillow")
        except jpeg.CodecMissing as error:
            raise dataset.UnfitImages(
                f"this loader decodes with Pillow: {error} (`pip install pillow`)."
            ) from error
        super().__init__(opt)

    def training(self, epoch, first=0):
        images = self.training_images(epoch, first).reshape(-1)
        return iter(self.loader(Samples(self.opt, self.train, epoch, images)))

    def evaluation(self):
        images = self.evaluation_images().reshape(-1)
        return iter(self.loader(Samples(self.opt, self.val, None, images)))
