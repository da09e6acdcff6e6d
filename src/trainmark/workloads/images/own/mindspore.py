"""MindSpore: MindDataset over MindRecord, decoded, cut and normalised by its own C++ operators."""

import mindspore.dataset as ds
import mindspore.dataset.vision as vision
import numpy as np

from trainmark.workloads.common import chance
from trainmark.workloads.images import sampling
from trainmark.workloads.images.samples import OwnLoader
from trainmark.workloads.images.sampling import PADDING

BILINEAR = vision.Inter.LINEAR


class Images(OwnLoader):
    formats = ("mindrecord",)
    repeatable = False  # which image meets which crop depends on the number of workers

    def training(self, epoch, first=0):
        """The order is ours, record by record; the crops are MindSpore's."""
        opt = self.opt
        ds.config.set_seed(chance.key(opt.seed, epoch) >> 33)
        images = self.training_images(epoch, first).reshape(-1)
        crop = vision.RandomCropDecodeResize(
            opt.image_size, sampling.AREA, sampling.ASPECT, BILINEAR, sampling.ATTEMPTS
        )
        return self._batches(self.train, images, [crop, vision.RandomHorizontalFlip(0.5)])

    def evaluation(self):
        size = self.opt.image_size
        whole = [vision.Decode(), vision.Resize(round(size * sampling.RESIZE), BILINEAR)]
        batches = self._batches(self.val, self.evaluation_share(), [*whole, vision.CenterCrop(size)])
        return self.padded(batches, (np.zeros((0, *self._shape()), np.float32), np.zeros(0, np.int64)))

    def _batches(self, split, images, operators):
        opt = self.opt
        workers = max(1, opt.workers)
        rows = ds.MindDataset(
            split.shards,
            columns_list=["data", "label"],
            sampler=ds.SubsetSampler(images.tolist()),
            num_parallel_workers=workers,
        )
        operators = [*operators, vision.Normalize(sampling.MEAN, sampling.DEVIATION)]
        if opt.layout == "NCHW":
            operators.append(vision.HWC2CHW())
        rows = rows.map(operators, "data", num_parallel_workers=workers)
        rows = rows.batch(opt.batch, drop_remainder=False)
        return rows.create_tuple_iterator(num_epochs=1, output_numpy=True)

    def _shape(self):
        size = self.opt.image_size
        return (3, size, size) if self.opt.layout == "NCHW" else (size, size, 3)

    def fill(self, pixels, labels, short):
        blank = np.zeros((short, *self._shape()), np.float32)
        return np.concatenate([pixels, blank]), np.concatenate(
            [labels, np.full(short, PADDING, labels.dtype)]
        )
