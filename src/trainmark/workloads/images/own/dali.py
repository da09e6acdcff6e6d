"""DALI: our windows, decoded and normalised on the CPU or by the mixed decoder; reads a set of any format."""

import struct

import numpy as np
from nvidia.dali import fn, pipeline_def, types

from trainmark.workloads.images import dataset, sampling
from trainmark.workloads.images.samples import OwnLoader
from trainmark.workloads.images.sampling import PADDING

JPEG_FRAMES = {0xC0, 0xC1, 0xC2, 0xC3, 0xC5, 0xC6, 0xC7, 0xC9, 0xCA, 0xCB, 0xCD, 0xCE, 0xCF}


def jpeg_size(data):
    """(width, height) from the first bytes of a JPEG; ValueError where there is none."""
    at = 2
    while at + 9 <= len(data) and data[at] == 0xFF:
        marker = data[at + 1]
        if marker in JPEG_FRAMES:
            height, width = struct.unpack_from(">HH", data, at + 5)
            return width, height
        at += 1 if marker == 0xFF else 2 + struct.unpack_from(">H", data, at + 2)[0]
    raise ValueError("no JPEG, or cut short in its head")


class Images(OwnLoader):
    """`opt.loader` ends in `gpu` for the mixed decoder, whose batches lie on the device."""

    repeatable = True

    def __init__(self, opt):
        self.gpu = opt.loader.endswith("gpu")
        if self.gpu and opt.device != "cuda":
            raise dataset.UnfitImages("the loader dali-gpu needs a GPU: use dali-cpu.")
        super().__init__(opt)
        self._pipes = {}

    def training(self, epoch, first=0):
        def window(index, width, height):
            return sampling.training_window(width, height, self.opt.seed, epoch, index)

        return self._pass("train", DaliFeed(self.train, self.training_images(epoch, first), window))

    def evaluation(self):
        def window(_, width, height):
            return sampling.evaluation_window(width, height, self.opt.image_size)

        return self._pass("val", DaliFeed(self.val, self.evaluation_images(), window))

    def _pass(self, name, feed):
        if name not in self._pipes:
            self._pipes[name] = self._built()
        pipe, source = self._pipes[name]
        source.feed = feed
        pipe.reset()
        for _ in range(feed.steps):
            images, labels = pipe.run()
            yield (images.as_tensor() if self.gpu else images.as_array()), labels.as_array()

    def _built(self):
        opt = self.opt
        source = DaliSource()
        pipe = _pipeline(
            source,
            self.gpu,
            opt.image_size,
            opt.layout,
            batch_size=opt.batch,
            num_threads=max(1, opt.workers),
            device_id=opt.local_rank if opt.device == "cuda" else None,
            prefetch_queue_depth=2,
        )
        pipe.build()
        return pipe, source


class DaliSource:
    """What DALI calls for a batch; the feed behind it changes with the pass."""

    feed = None

    def __call__(self):
        return self.feed.batch()


class DaliFeed:
    """The encoded images of one pass, each with the slice to decode."""

    def __init__(self, split, images, window):
        self.split, self.images, self.window = split, images, window
        self.steps, self._next = len(images), 0

    def batch(self):
        if self._next == self.steps:
            raise StopIteration
        rows = [self._row(int(index)) for index in self.images[self._next]]
        self._next += 1
        return tuple(list(column) for column in zip(*rows))

    def _row(self, index):
        label = self.split.labels[index] if index != PADDING else PADDING
        index = max(index, 0)  # where there is none, the first stands in, with the label that does not count
        data = self.split.read(index)
        try:
            width, height = jpeg_size(data)
        except ValueError as error:
            raise dataset.BadImage(self.split, index, str(error)) from error
        window = self.window(index, width, height)
        start = np.array([window.top, window.left], np.float32)
        extent = np.array([window.height, window.width], np.float32)
        return np.frombuffer(data, np.uint8), start, extent, np.int32(window.flip), np.int64(label)


@pipeline_def
def _pipeline(source, gpu, size, layout):
    data, start, extent, flip, label = fn.external_source(source, num_outputs=5, batch=True)
    images = fn.decoders.image_slice(
        data,
        start,
        extent,
        axis_names="HW",
        normalized_anchor=False,
        normalized_shape=False,
        device="mixed" if gpu else "cpu",
        output_type=types.RGB,
        adjust_orientation=False,
    )
    images = fn.resize(images, size=[size, size], interp_type=types.INTERP_LINEAR, antialias=True)
    images = fn.crop_mirror_normalize(
        images,
        dtype=types.FLOAT,
        output_layout="CHW" if layout == "NCHW" else "HWC",
        mean=list(sampling.MEAN),
        std=list(sampling.DEVIATION),
        mirror=flip,
    )
    return images, label
