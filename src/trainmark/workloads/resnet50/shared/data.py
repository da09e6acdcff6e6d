"""Images as batches that a step takes, from a dataset on disk or drawn at random on the host."""

from __future__ import annotations

import importlib
import itertools
import os
import zlib
from typing import List, Tuple

import numpy as np

from trainmark.workloads.common.refusal import Refusal
from trainmark.workloads.resnet50.shared import recipe


class ImageFeed:
    """`training(epoch, first)` and `evaluation()` give placed batches, from the loader that was asked for."""

    def __init__(self, opt):
        from trainmark.workloads.images import dataset
        from trainmark.workloads.images import sampling as order

        self.opt = opt
        self.training_images = dataset.open_split(opt.dataset, "train").count
        self.validation_samples = dataset.open_split(opt.dataset, "val").count if opt.by_epochs else 0
        self.steps_per_epoch = order.steps_per_epoch(self.training_images, opt.batch, opt.world_size)
        self.source = None

    def open(self, training):
        """Touch the data; a clock that counts from there starts before."""
        self.source = (HostSource if self.opt.loader == "host" else OwnSource)(self.opt, training)
        self.training, self.evaluation = self.source.training, self.source.evaluation
        return self

    def endless(self):
        """Epoch after epoch: for measuring the rate alone."""
        return itertools.chain.from_iterable(self.training(epoch) for epoch in itertools.count())

    def start_facts(self):
        return {
            "training_samples": self.training_images,
            "validation_samples": self.validation_samples,
            "loader": self.opt.loader,
            "dataset": os.path.basename(os.path.abspath(self.opt.dataset)),
            "dataset_checksum": index_checksum(os.path.join(self.opt.dataset, "train", "index.npy")),
        }

    def end_facts(self):
        """Return the images that could not be read and were left out, by name."""
        bad = self.source.bad() if hasattr(self.source, "bad") else []
        return {"bad_images": bad} if bad else {}

    def close(self):
        if hasattr(self.source, "close"):
            self.source.close()


class HostSource:
    """Our own loader: the same pixels in the same order in every framework."""

    def __init__(self, opt, training):
        from trainmark.workloads.images import dataset, host

        self.feed = training.feed
        self.loaders = {
            split: host.HostLoader(
                dataset.open_split(opt.dataset, split),
                batch=opt.batch,
                size=opt.image_size,
                rank=opt.rank,
                world_size=opt.world_size,
                seed=opt.seed,
                workers=opt.workers or cores_of_rank(),
                allocate=training.allocate,
                on_bad=opt.on_bad,
                least_area=opt.recipe.least_area,
            )
            for split in (("train", "val") if opt.by_epochs else ("train",))
        }

    def training(self, epoch, first=0):
        return self.feed(self.loaders["train"].training(epoch, first))

    def evaluation(self):
        return self.feed(self.loaders["val"].evaluation())

    def bad(self):
        return sorted({name for loader in self.loaders.values() for name in loader.bad_names})

    def close(self):
        for loader in self.loaders.values():
            loader.close()


class OwnSource:
    """The framework's own loader, or DALI; `place_own` makes its batches what the framework's step takes."""

    def __init__(self, opt, training):
        kind = "dali" if opt.loader.startswith("dali") else opt.framework
        self.images = importlib.import_module("trainmark.workloads.images.own." + kind).Images(opt)
        self.place = training.place_own

    def training(self, epoch, first=0):
        return itertools.starmap(self.place, self.images.training(epoch, first))

    def evaluation(self):
        return itertools.starmap(self.place, self.images.evaluation())


def index_checksum(path):
    """Return that of the index, which has one of every image: the same set has the same, wherever it lies."""
    with open(path, "rb") as file:
        return "crc32:{:08x}".format(zlib.crc32(file.read()))


def cores_of_rank():
    """Return how many this rank may use: what it was allotted, else its share of the machine."""
    allotted = os.environ.get("OMP_NUM_THREADS")
    if allotted:
        return int(allotted)
    return max(1, len(os.sched_getaffinity(0)) // int(os.environ.get("LOCAL_WORLD_SIZE", "1")))


def check_dataset(opt):
    """Refuse a dataset that is not there, not whole, or too small."""
    from trainmark.workloads.images import dataset
    from trainmark.workloads.images import sampling as augment

    if not opt.dataset:
        raise Refusal("data: images needs a dataset; name its folder.")
    try:
        images = dataset.open_split(opt.dataset, "train").count
        if opt.by_epochs:
            dataset.open_split(opt.dataset, "val")
    except dataset.UnfitImages as error:
        raise Refusal(str(error)) from error
    if opt.loader != "host" and opt.recipe.least_area != augment.AREA[0]:
        raise Refusal(
            "{} crops from {:g} of an image on, not from {:g}, which only loader: host does.".format(
                opt.recipe_name, opt.recipe.least_area, augment.AREA[0]
            )
        )
    if images < opt.global_batch:
        raise Refusal(
            "the training set has {} images and a step takes {}; use a smaller batch.".format(
                images, opt.global_batch
            )
        )


def synthetic_batches(opt, count: int) -> List[Tuple[np.ndarray, np.ndarray]]:
    """Images as (images, 3, rows, columns) and labels; other ones on each rank."""
    random = np.random.default_rng([opt.seed, opt.rank])
    shape = (opt.batch, 3, opt.image_size, opt.image_size)
    return [
        (random.standard_normal(shape, np.float32), random.integers(0, recipe.CLASSES, opt.batch))
        for _ in range(count)
    ]


class ImageTraining:
    """Beside the verbs of a framework's training."""

    def host_batches(self, count: int) -> List[Tuple[np.ndarray, np.ndarray]]:
        return synthetic_batches(self.opt, count)
