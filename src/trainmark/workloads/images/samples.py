"""One image after another for loaders whose workers are processes: Pillow decodes, numpy normalises."""

import numpy as np

from trainmark.workloads.images import dataset, jpeg, sampling
from trainmark.workloads.images.host import PADDING

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


def training_samples(opt, split, epoch, first):
    """The samples of this rank's batches from `first` on, in the order of the epoch."""
    places = sampling.training_share(split.count, opt.batch, opt.rank, opt.world_size)[first:]
    return Samples(opt, split, epoch, sampling.epoch_order(split.count, opt.seed, epoch)[places].reshape(-1))


def evaluation_samples(opt, split):
    return Samples(opt, split, None, evaluation_images(opt, split.count).reshape(-1))


def evaluation_images(opt, count):
    """(batches, batch) images of this rank, as many batches on every rank, -1 where there is none."""
    share = sampling.evaluation_share(count, opt.rank, opt.world_size)
    batches = sampling.evaluation_batches(count, opt.batch, opt.world_size)
    padded = np.full(batches * opt.batch, PADDING)
    padded[: len(share)] = share
    return padded.reshape(batches, opt.batch)


def check_pillow():
    try:
        jpeg.codec("pillow")
    except jpeg.CodecMissing as error:
        raise dataset.UnfitImages(
            f"this loader decodes with Pillow: {error} (`pip install pillow`)."
        ) from error
