"""FFCV: its compiled loader over a beton file of JPEGs."""

import numpy as np
import torch
from ffcv.fields.decoders import CenterCropRGBImageDecoder, IntDecoder, RandomResizedCropRGBImageDecoder
from ffcv.loader import Loader, OrderOption
from ffcv.transforms import NormalizeImage, RandomHorizontalFlip, Squeeze, ToTensor, ToTorchImage

from trainmark.workloads.images import dataset, sampling
from trainmark.workloads.images.host import PADDING

FORMATS = ("beton",)
REPEATABLE = False  # its random numbers cannot be seeded


class Images:
    def __init__(self, opt):
        dataset.require_format(opt.dataset, *FORMATS)
        self.opt = opt
        self.train = dataset.open_split(opt.dataset, "train")
        self.val = dataset.open_split(opt.dataset, "val")
        self._loaders = {}

    def training(self, epoch, first=0):
        """The order is ours; the crops are FFCV's."""
        opt = self.opt
        places = sampling.training_share(self.train.count, opt.batch, opt.rank, opt.world_size)[first:]
        images = sampling.epoch_order(self.train.count, opt.seed, epoch)[places].reshape(-1)
        crop = RandomResizedCropRGBImageDecoder(
            (opt.image_size, opt.image_size), sampling.AREA, sampling.ASPECT
        )
        return iter(self._loader(self.train, images, [crop, RandomHorizontalFlip()]))

    def evaluation(self):
        opt = self.opt
        images = sampling.evaluation_share(self.val.count, opt.rank, opt.world_size)
        ratio = opt.image_size / round(opt.image_size * sampling.RESIZE)
        crop = CenterCropRGBImageDecoder((opt.image_size, opt.image_size), ratio)
        batches = sampling.evaluation_batches(self.val.count, opt.batch, opt.world_size)
        made = 0
        for pixels, labels in self._loader(self.val, images, [crop]):
            made += 1
            yield self._padded(pixels, labels)
        for _ in range(made, batches):
            size = opt.image_size
            yield self._padded(torch.zeros(0, 3, size, size), torch.zeros(0, dtype=torch.int64))

    def _loader(self, split, images, crop):
        """Compiled once for each split, which takes long; a pass only changes the order."""
        if split.name not in self._loaders:
            self._loaders[split.name] = self._compiled(split, images, crop)
        loader = self._loaders[split.name]
        loader.indices = loader.traversal_order.indices = images
        return loader

    def _compiled(self, split, images, crop):
        opt = self.opt
        normalise = NormalizeImage(np.array(sampling.MEAN), np.array(sampling.DEVIATION), np.float32)
        return Loader(
            split.shards[0],
            batch_size=opt.batch,
            num_workers=max(1, opt.workers),
            order=OrderOption.SEQUENTIAL,
            indices=images,
            drop_last=False,
            os_cache=True,
            pipelines={
                "image": [*crop, normalise, ToTensor(), ToTorchImage(channels_last=opt.layout == "NHWC")],
                "label": [IntDecoder(), ToTensor(), Squeeze()],
            },
        )

    def _padded(self, pixels, labels):
        short = self.opt.batch - len(labels)
        if not short:
            return pixels, labels
        blank = torch.zeros(short, *pixels.shape[1:])
        return torch.cat([pixels, blank]), torch.cat(
            [labels, torch.full((short,), PADDING, dtype=labels.dtype)]
        )
