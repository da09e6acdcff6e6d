"""MindSpore: MindDataset over MindRecord, decoded, cut and normalised by its own C++ operators."""

import mindspore.dataset as ds
import mindspore.dataset.vision as vision
import numpy as np

from trainmark.workloads.common import chance
from trainmark.workloads.images import dataset, sampling
from trainmark.workloads.images.host import PADDING

FORMATS = ("mindrecord",)
REPEATABLE = False  # which image meets which crop depends on the number of workers
BILINEAR = vision.Inter.LINEAR


class Images:
    def __init__(self, opt):
        dataset.require_format(opt.dataset, *FORMATS)
        self.opt = opt
        self.train = dataset.open_split(opt.dataset, "train")
        self.val = dataset.open_split(opt.dataset, "val")

    def training(self, epoch, first=0):
        """The order is ours, record by record; the crops are MindSpore's."""
        opt = self.opt
        ds.config.set_seed(chance.key(opt.seed, epoch) >> 33)
        places = sampling.training_share(self.train.count, opt.batch, opt.rank, opt.world_size)[first:]
        images = sampling.epoch_order(self.train.count, opt.seed, epoch)[places].reshape(-1)
        crop = vision.RandomCropDecodeResize(
            opt.image_size, sampling.AREA, sampling.ASPECT, BILINEAR, sampling.ATTEMPTS
        )
        return self._batches(self.train, images, [crop, vision.RandomHorizontalFlip(0.5)])

    def evaluation(self):
        opt = self.opt
        images = sampling.evaluation_share(self.val.count, opt.rank, opt.world_size)
        batches = sampling.evaluation_batches(self.val.count, opt.batch, opt.world_size)
        whole = [vision.Decode(), vision.Resize(round(opt.image_size * sampling.RESIZE), BILINEAR)]
        made = 0
        for pixels, labels in self._batches(self.val, images, [*whole, vision.CenterCrop(opt.image_size)]):
            made += 1
            yield self._padded(pixels, labels)
        for _ in range(made, batches):
            yield self._padded(np.zeros((0, *self._shape()), np.float32), np.zeros(0, np.int64))

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

    def _padded(self, pixels, labels):
        short = self.opt.batch - len(labels)
        if not short:
            return pixels, labels
        blank = np.zeros((short, *self._shape()), np.float32)
        return np.concatenate([pixels, blank]), np.concatenate(
            [labels, np.full(short, PADDING, labels.dtype)]
        )
