"""FFCV: its compiled loader over a beton file of JPEGs."""

import numpy as np
import torch
from ffcv.fields.decoders import CenterCropRGBImageDecoder, IntDecoder, RandomResizedCropRGBImageDecoder
from ffcv.loader import Loader, OrderOption
from ffcv.transforms import NormalizeImage, RandomHorizontalFlip, Squeeze, ToTensor, ToTorchImage

from trainmark.workloads.images import sampling
from trainmark.workloads.images.samples import OwnLoader
from trainmark.workloads.images.sampling import PADDING


class Images(OwnLoader):
    formats = ("beton",)
    repeatable = False  # its random numbers cannot be seeded

    def __init__(self, opt):
        super().__init__(opt)
        self._loaders = {}

    def training(self, epoch, first=0):
        """The order is ours; the crops are FFCV's."""
        images, size = self.training_images(epoch, first).reshape(-1), self.opt.image_size
        crop = RandomResizedCropRGBImageDecoder((size, size), sampling.AREA, sampling.ASPECT)
        return iter(self._loader(self.train, images, [crop, RandomHorizontalFlip()]))

    def evaluation(self):
        size = self.opt.image_size
        crop = CenterCropRGBImageDecoder((size, size), size / round(size * sampling.RESIZE))
        batches = self._loader(self.val, self.evaluation_share(), [crop])
        return self.padded(batches, (torch.zeros(0, 3, size, size), torch.zeros(0, dtype=torch.int64)))

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

    def fill(self, pixels, labels, short):
        blank = torch.zeros(short, *pixels.shape[1:])
        return torch.cat([pixels, blank]), torch.cat(
            [labels, torch.full((short,), PADDING, dtype=labels.dtype)]
        )
